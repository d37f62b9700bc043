// Chunks whose bytes the keeper moves away: their mappings stay written down, with their addresses,
// and are made again when the chunks are back.
#include <unordered_map>

#include "base/try.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {

// The session's chunks by their keeper's numbers; of sessions on one device.
std::unordered_map<uint64_t, uint64_t> Memory::ByKeeperChunk() const {
  std::unordered_map<uint64_t, uint64_t> numbers;
  for (const auto& [number, chunk] : chunks_) numbers[chunk.keeper_chunk] = number;
  return numbers;
}

std::unordered_multimap<uint64_t, uint64_t> Memory::AddressesByChunk() const {
  std::unordered_multimap<uint64_t, uint64_t> addresses;
  for (const auto& [address, mapping] : mappings_) addresses.emplace(mapping.chunk, address);
  return addresses;
}

CUresult Memory::LetGo(const std::vector<uint64_t>& keeper_chunks) {
  base::MutexLock lock(mutex_);
  auto numbers = ByKeeperChunk();
  auto addresses = AddressesByChunk();
  for (uint64_t keeper_chunk : keeper_chunks) {
    auto number = numbers.find(keeper_chunk);
    // Given back meanwhile: the keeper receives that message first.
    if (number == numbers.end() || chunks_.at(number->second).away) continue;
    Chunk& chunk = chunks_.at(number->second);
    auto [at, end] = addresses.equal_range(number->second);
    for (; at != end; ++at) {
      LONGWIRE_TRY(driver_.cuMemUnmap(at->second, chunk.bytes));
    }
    if (auto handle = TakeHandle(&chunk)) {
      LONGWIRE_TRY(driver_.cuMemRelease(handle));
    }
    chunk.away = true;
    ++away_;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::TakeBack(std::vector<KeeperClient::Chunk>& chunks) {
  base::MutexLock lock(mutex_);
  auto numbers = ByKeeperChunk();
  auto addresses = AddressesByChunk();
  for (auto& returned : chunks) {
    auto number = numbers.find(returned.id);
    if (number == numbers.end() || !chunks_.at(number->second).away) continue;
    Chunk& chunk = chunks_.at(number->second);
    CUresult result = ImportHandle(returned.memory, &chunk.handle);
    if (result != CUDA_SUCCESS) return result;
    chunk.away = false;
    --away_;
    auto [at, end] = addresses.equal_range(number->second);
    for (; at != end; ++at) {
      result = driver_.cuMemMap(at->second, chunk.bytes, 0, chunk.handle, 0);
      if (result == CUDA_SUCCESS && mappings_.at(at->second).access) {
        result = Access(at->second, chunk.bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      }
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult Memory::ImportHandle(const wire::Descriptor& memory,
                              CUmemGenericAllocationHandle* handle) {
  // The driver takes a descriptor as a pointer-sized number.
  auto* descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(memory.get()));
  return driver_.cuMemImportFromShareableHandle(handle, descriptor,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

}  // namespace longwire::worker
