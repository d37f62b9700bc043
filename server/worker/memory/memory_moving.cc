// Chunks and mappings of a session that moves: read in the old worker, made again in the new one,
// with chunks of another keeper under the same numbers at the same addresses.
#include <algorithm>
#include <set>
#include <utility>

#include "base/try.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {
namespace {

// Chunks that are lent and not imported hold a descriptor each, here and on their way.
constexpr size_t kCarriedPerLease = keeper::kChunksPerPacket;
// For the driver's own tables of a whole device.
constexpr uint64_t kDriversRoom = uint64_t{256} << 20;

}  // namespace

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

// What was leased with the opening has numbers that the old worker's chunks may have, too.
CUresult Memory::DropOthers(const CarriedMemory& carried) {
  std::set<uint64_t> chunks;
  std::map<uint64_t, CarriedMapping> mappings;
  if (restored_) {
    for (const CarriedChunk& one : carried.chunks) chunks.insert(one.number);
    for (const CarriedMapping& one : carried.mappings) mappings[one.address] = one;
  }
  base::MutexLock lock(mutex_);
  std::vector<std::pair<uint64_t, uint64_t>> unmapped;
  for (const auto& [address, mapping] : mappings_) {
    auto stays = mappings.find(address);
    if (stays != mappings.end() && stays->second.chunk == mapping.chunk) continue;
    unmapped.emplace_back(address, mapping.bytes);
  }
  for (const auto& [address, bytes] : unmapped) UnmapRange(address, bytes);
  std::vector<uint64_t> dropped;
  for (const auto& [number, chunk] : chunks_) {
    if (!chunks.contains(number)) dropped.push_back(number);
  }
  lock.Unlock();
  restored_ = true;
  return dropped.empty() ? CUDA_SUCCESS : Return(dropped);
}

CUresult Memory::LeaseCarried(const CarriedMemory& carried, std::string* why) {
  std::vector<CarriedChunk> lacking;
  {
    base::MutexLock lock(mutex_);
    for (const CarriedChunk& one : carried.chunks) {
      if (!chunks_.contains(one.number)) lacking.push_back(one);
    }
  }
  for (size_t at = 0; at < lacking.size();) {
    const size_t count = std::min(lacking.size() - at, kCarriedPerLease);
    std::vector<uint64_t> bytes;
    for (size_t i = 0; i < count; ++i) bytes.push_back(lacking[at + i].bytes);
    std::vector<KeeperClient::Chunk> granted;
    LONGWIRE_TRY(
        static_cast<CUresult>(devices_.front().keeper->Lease(bytes, false, &granted, why)));
    *why = "the keeper lends other chunks";
    if (granted.size() != count) return CUDA_ERROR_OUT_OF_MEMORY;
    for (auto& chunk : granted) {
      const CarriedChunk& wanted = lacking[at++];
      if (chunk.bytes != wanted.bytes) return CUDA_ERROR_INVALID_VALUE;
      base::MutexLock lock(mutex_);
      Chunk& place = chunks_[wanted.number];
      lock.Unlock();  // nobody else takes it away before the session starts
      place = {0, chunk.bytes, 0, chunk.id, 0, false, std::move(chunk.memory)};
      *why = "the driver cannot take a chunk";
      if (++lent_ > kCarriedPerLease) LONGWIRE_TRY(WithRoom([&] { return Import(&place); }));
    }
  }
  base::MutexLock lock(mutex_);
  next_chunk_ = carried.next_chunk;
  return CUDA_SUCCESS;
}

// The driver needs memory of its own for what it maps, and the keeper may keep all of the device
// that is not lent: it lets go of some then.
CUresult Memory::WithRoom(const std::function<CUresult()>& call) {
  CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  KeeperClient& keeper = *devices_.front().keeper;
  std::string sentence;
  uint64_t charged = 0;
  if (keeper.Charge(kDriversRoom, kDriversRoom, &charged, &sentence) != 0) return result;
  result = call();
  keeper.Uncharge(charged);
  return result;
}

CUresult Memory::MapCarried(const CarriedMapping& one, std::string* why) {
  base::MutexLock lock(mutex_);
  auto chunk = chunks_.find(one.chunk);
  *why = "its mappings are broken";
  if (chunk == chunks_.end() || chunk->second.bytes != one.bytes ||
      !InWindow(one.address, one.bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Chunk& mapped = chunk->second;
  auto there = mappings_.find(one.address);
  const bool is_there = there != mappings_.end();
  const bool had_access = is_there && there->second.access;
  lock.Unlock();  // as above
  if (!is_there) {
    *why = "the driver cannot take a chunk";
    LONGWIRE_TRY(WithRoom([&] { return Import(&mapped); }));
    *why = "the driver cannot map a chunk";
    LONGWIRE_TRY(
        WithRoom([&] { return driver_.cuMemMap(one.address, one.bytes, 0, mapped.handle, 0); }));
    lock.Lock();
    mappings_[one.address] = {one.bytes, one.chunk, one.access};
    ++mapped.mappings;
    lock.Unlock();
  }
  if (one.access == had_access) return CUDA_SUCCESS;
  *why = "the driver cannot map a chunk";
  LONGWIRE_TRY(WithRoom([&] {
    return Access(one.address, one.bytes, 0,
                  one.access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }));
  lock.Lock();
  mappings_[one.address].access = one.access;
  return CUDA_SUCCESS;
}

CUresult Memory::Restore(const CarriedMemory& carried, std::string* why) {
  *why = "what was freed meanwhile cannot be given back";
  LONGWIRE_TRY(DropOthers(carried));
  LONGWIRE_TRY(LeaseCarried(carried, why));
  for (const CarriedMapping& one : carried.mappings) LONGWIRE_TRY(MapCarried(one, why));
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
