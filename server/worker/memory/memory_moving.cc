// Chunks and mappings of a session that moves: read in the old worker, made again in the new one,
// with chunks of another keeper under the same numbers at the same addresses.
#include <algorithm>
#include <set>
#include <utility>

#include "base/try.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {

CarriedMemory Memory::Carry() {
  base::MutexLock lock(mutex_);
  CarriedMemory carried;
  carried.next_chunk = next_chunk_;
  for (const auto& [number, chunk] : chunks_) carried.chunks.push_back({number, chunk.bytes});
  for (const auto& [address, mapping] : mappings_) {
    carried.mappings.push_back({address, mapping.bytes, mapping.chunk, mapping.access});
  }
  return carried;
}

std::vector<CarriedChunk> Memory::Hidden() {
  base::MutexLock lock(mutex_);
  std::set<uint64_t> accessible;
  for (const auto& [address, mapping] : mappings_) {
    if (mapping.access) accessible.insert(mapping.chunk);
  }
  std::vector<CarriedChunk> hidden;
  for (const auto& [number, chunk] : chunks_) {
    // Without a handle it was never mapped.
    if (chunk.handle == 0 || accessible.contains(number)) continue;
    hidden.push_back({number, chunk.bytes});
  }
  return hidden;
}

CUresult Memory::Show(uint64_t chunk, CUdeviceptr* address) {
  base::MutexLock lock(mutex_);
  auto found = chunks_.find(chunk);
  if (found == chunks_.end()) return CUDA_ERROR_INVALID_HANDLE;
  Chunk& shown = found->second;
  LONGWIRE_TRY(Import(&shown));
  LONGWIRE_TRY(driver_.cuMemAddressReserve(address, shown.bytes, 0, 0, 0));
  CUresult result = driver_.cuMemMap(*address, shown.bytes, 0, shown.handle, 0);
  if (result == CUDA_SUCCESS) {
    result = Access(*address, shown.bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (result == CUDA_SUCCESS) return result;
    driver_.cuMemUnmap(*address, shown.bytes);
  }
  driver_.cuMemAddressFree(*address, shown.bytes);
  return result;
}

void Memory::Hide(CUdeviceptr address, uint64_t bytes) {
  driver_.cuMemUnmap(address, bytes);
  driver_.cuMemAddressFree(address, bytes);
}

CUresult Memory::LeaseCarried(const CarriedMemory& carried) {
  std::vector<uint64_t> spare;
  {
    base::MutexLock lock(mutex_);
    if (!mappings_.empty()) return CUDA_ERROR_ALREADY_MAPPED;
    for (const auto& [number, chunk] : chunks_) spare.push_back(number);
  }
  if (!spare.empty()) LONGWIRE_TRY(Return(spare));
  for (size_t at = 0; at < carried.chunks.size();) {
    const size_t count = std::min(carried.chunks.size() - at, keeper::kMaxChunksPerLease);
    std::vector<uint64_t> bytes;
    for (size_t i = 0; i < count; ++i) bytes.push_back(carried.chunks[at + i].bytes);
    std::vector<KeeperClient::Chunk> granted;
    std::string sentence;
    LONGWIRE_TRY(
        static_cast<CUresult>(devices_.front().keeper->Lease(bytes, false, &granted, &sentence)));
    if (granted.size() != count) return CUDA_ERROR_OUT_OF_MEMORY;
    base::MutexLock lock(mutex_);
    for (auto& chunk : granted) {
      const CarriedChunk& wanted = carried.chunks[at++];
      if (chunk.bytes != wanted.bytes) return CUDA_ERROR_INVALID_VALUE;
      Chunk& place = chunks_[wanted.number];
      place = {0, chunk.bytes, 0, chunk.id, 0, false, std::move(chunk.memory)};
      ++lent_;
    }
  }
  base::MutexLock lock(mutex_);
  next_chunk_ = carried.next_chunk;
  return CUDA_SUCCESS;
}

CUresult Memory::Restore(const CarriedMemory& carried) {
  LONGWIRE_TRY(LeaseCarried(carried));
  base::MutexLock lock(mutex_);
  for (const CarriedMapping& one : carried.mappings) {
    auto chunk = chunks_.find(one.chunk);
    if (chunk == chunks_.end() || chunk->second.bytes != one.bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!InWindow(one.address, one.bytes)) return CUDA_ERROR_INVALID_VALUE;
    LONGWIRE_TRY(Import(&chunk->second));
    LONGWIRE_TRY(driver_.cuMemMap(one.address, one.bytes, 0, chunk->second.handle, 0));
    mappings_[one.address] = {one.bytes, one.chunk, one.access};
    ++chunk->second.mappings;
    if (one.access) {
      LONGWIRE_TRY(Access(one.address, one.bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
