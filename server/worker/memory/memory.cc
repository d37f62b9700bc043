#include "server/worker/memory/memory.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

// Chunks lent and not imported hold a descriptor each. Programs may reserve far more memory than
// they map.
constexpr size_t kMaxLent = 64;

}  // namespace

CUresult Memory::Lease(int32_t device, const std::vector<uint64_t>& bytes, bool spare,
                       std::vector<wire::LeasedChunk>* leased, std::string* why) {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  if (bytes.empty()) return CUDA_ERROR_INVALID_VALUE;
  Device& from = devices_[device];
  uint64_t sum = 0;
  for (uint64_t size : bytes) {
    if (size == 0 || size > from.total_memory || sum > from.total_memory - size) {
      return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    sum += size;
  }
  if (bytes.size() > keeper::kMaxChunksPerLease) return CUDA_ERROR_INVALID_VALUE;
  std::vector<KeeperClient::Chunk> granted;
  std::string sentence;
  auto result = static_cast<CUresult>(from.keeper->Lease(bytes, spare, &granted, &sentence));
  if (result != CUDA_SUCCESS) {
    LogLine("no lease of %llu bytes on device %d: %s", static_cast<unsigned long long>(sum), device,
            sentence.c_str());
    if (why != nullptr) *why = "device " + std::to_string(device) + ": " + sentence;
    return result;
  }
  return Add(device, granted, leased);
}

// The driver takes longer to import a chunk than the keeper to lend it. So that is done with its
// first mapping, for which nobody waits before there is work for the memory.
CUresult Memory::Add(int32_t device, std::vector<KeeperClient::Chunk>& granted,
                     std::vector<wire::LeasedChunk>* leased) {
  CUresult result = CUDA_SUCCESS;
  std::vector<Chunk> added;
  std::vector<uint64_t> ids;
  for (auto& chunk : granted) {
    ids.push_back(chunk.id);
    added.push_back({0, chunk.bytes, device, chunk.id, 0, false, std::move(chunk.memory)});
    if (++lent_ > kMaxLent && result == CUDA_SUCCESS) result = Import(&added.back());
  }
  if (result != CUDA_SUCCESS) {
    LogLine("a leased chunk could not be imported: error %d", result);
    for (Chunk& chunk : added) {
      if (auto handle = TakeHandle(&chunk)) driver_.cuMemRelease(handle);
    }
    devices_[static_cast<size_t>(device)].keeper->Return(ids);
    return result;
  }
  base::MutexLock lock(mutex_);
  for (Chunk& chunk : added) {
    leased->push_back({next_chunk_, chunk.bytes});
    chunks_[next_chunk_++] = std::move(chunk);
  }
  return result;
}

CUresult Memory::Import(Chunk* chunk) {
  if (!chunk->lent.valid()) return CUDA_SUCCESS;
  LONGWIRE_TRY(ImportHandle(chunk->lent, &chunk->handle));
  chunk->lent = {};
  --lent_;
  return CUDA_SUCCESS;
}

CUmemGenericAllocationHandle Memory::TakeHandle(Chunk* chunk) {
  if (chunk->lent.valid()) --lent_;
  chunk->lent = {};
  return std::exchange(chunk->handle, 0);
}

CUresult Memory::Share(const std::vector<uint64_t>& chunks, SharedToken* token) {
  std::vector<uint64_t> ids;
  int32_t device = -1;
  {
    base::MutexLock lock(mutex_);
    for (uint64_t id : chunks) {
      auto found = chunks_.find(id);
      if (found == chunks_.end()) return CUDA_ERROR_INVALID_HANDLE;
      if (!ids.empty() && found->second.device != device) return CUDA_ERROR_INVALID_VALUE;
      device = found->second.device;
      ids.push_back(found->second.keeper_chunk);
    }
  }
  if (ids.empty() || ids.size() > keeper::kMaxChunksPerLease) return CUDA_ERROR_INVALID_VALUE;
  std::string sentence;
  int code = devices_[static_cast<size_t>(device)].keeper->Share(ids, token, &sentence);
  if (code != 0) {
    LogLine("memory is not shared: %s", sentence.c_str());
  } else if (links_ != nullptr) {
    links_->Add(*token);
  }
  return static_cast<CUresult>(code);
}

CUresult Memory::Borrow(const SharedToken& token, int32_t* device,
                        std::vector<wire::LeasedChunk>* borrowed) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  std::string sentence = "no device";
  for (size_t i = 0; i < devices_.size() && result == CUDA_ERROR_INVALID_VALUE; ++i) {
    *device = static_cast<int32_t>(i);
    std::vector<KeeperClient::Chunk> granted;
    result = static_cast<CUresult>(devices_[i].keeper->Borrow(token, &granted, &sentence));
    if (result != CUDA_SUCCESS) continue;
    if (links_ != nullptr) links_->Add(token);
    return Add(*device, granted, borrowed);
  }
  LogLine("shared memory was not borrowed: %s", sentence.c_str());
  return result;
}

CUresult Memory::Return(const std::vector<uint64_t>& chunks) {
  std::map<int32_t, std::vector<uint64_t>> by_device;
  std::vector<CUmemGenericAllocationHandle> handles;
  CUresult result = CUDA_SUCCESS;
  base::MutexLock lock(mutex_);
  for (uint64_t id : chunks) {
    auto found = chunks_.find(id);
    if (found == chunks_.end() || found->second.mappings != 0) {
      result = CUDA_ERROR_INVALID_HANDLE;
      continue;
    }
    if (found->second.away) --away_;
    if (auto handle = TakeHandle(&found->second)) handles.push_back(handle);
    by_device[found->second.device].push_back(found->second.keeper_chunk);
    chunks_.erase(found);
  }
  lock.Unlock();  // the driver can take milliseconds, and the log thread maps meanwhile
  for (auto handle : handles) driver_.cuMemRelease(handle);
  for (auto& [device, ids] : by_device) devices_[device].keeper->Return(ids);
  return result;
}

CUresult Memory::Reclaimed(int32_t device, const keeper::Reclaimed& answer) {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  devices_[static_cast<size_t>(device)].keeper->Reclaimed(answer);
  return CUDA_SUCCESS;
}

uint64_t Memory::BytesOf(const std::vector<uint64_t>& chunks) {
  base::MutexLock lock(mutex_);
  uint64_t sum = 0;
  for (uint64_t id : chunks) {
    auto found = chunks_.find(id);
    if (found == chunks_.end()) return 0;
    sum += found->second.bytes;  // bounded by the device's memory at Lease
  }
  return sum;
}

// Of any device: a program may map one device's memory at addresses that it reserved for another's.
bool Memory::InWindow(uint64_t address, uint64_t bytes) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const Device& device) {
    const wire::Window& window = device.window;
    return address >= window.base && address - window.base <= window.bytes &&
           bytes <= window.bytes - (address - window.base);
  });
}

int32_t Memory::DeviceOf(uint64_t address) {
  base::MutexLock lock(mutex_);
  auto place = mappings_.upper_bound(address);
  if (place == mappings_.begin()) return -1;
  --place;
  if (address - place->first >= place->second.bytes) return -1;
  auto chunk = chunks_.find(place->second.chunk);
  return chunk == chunks_.end() ? -1 : chunk->second.device;
}

bool Memory::CoversWholeChunks(uint64_t address, uint64_t bytes) const {
  if (bytes == 0 || bytes > UINT64_MAX - address) return false;
  uint64_t at = address;
  while (at < address + bytes) {
    auto place = mappings_.find(at);
    if (place == mappings_.end()) return false;
    at += place->second.bytes;
  }
  return at == address + bytes;
}

std::vector<std::pair<uint64_t, Memory::Mapping>> Memory::TakeMappings(uint64_t address,
                                                                       uint64_t bytes) {
  std::vector<std::pair<uint64_t, Mapping>> taken;
  auto place = mappings_.lower_bound(address);
  while (place != mappings_.end() && place->first < address + bytes) {
    taken.push_back(*place);
    place = mappings_.erase(place);
  }
  return taken;
}

void Memory::UnmapRange(uint64_t address, uint64_t bytes) {
  auto taken = TakeMappings(address, bytes);
  std::vector<std::pair<uint64_t, uint64_t>> mapped;
  for (auto& [at, mapping] : taken) {
    auto chunk = chunks_.find(mapping.chunk);
    if (chunk == chunks_.end() || !chunk->second.away) mapped.emplace_back(at, mapping.bytes);
  }
  mutex_.Unlock();  // the driver can take milliseconds, as above
  for (auto& [at, length] : mapped) driver_.cuMemUnmap(at, length);
  mutex_.Lock();
  std::map<int32_t, uint64_t> by_device;
  for (auto& [at, mapping] : taken) {
    auto chunk = chunks_.find(mapping.chunk);
    if (chunk == chunks_.end()) continue;
    --chunk->second.mappings;
    by_device[chunk->second.device] += mapping.bytes;
  }
  for (auto& [device, unmapped] : by_device) {
    devices_[static_cast<size_t>(device)].keeper->Note(keeper::MemoryEventKind::kUnmap, unmapped);
  }
}

CUresult Memory::Map(int32_t device, uint64_t address, const std::vector<uint64_t>& chunks) {
  uint64_t sum = BytesOf(chunks);
  if (chunks.empty() || sum == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  if (!InWindow(address, sum)) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(mutex_);
  LONGWIRE_TRY(MapRange(device, address, chunks));
  int32_t owner = chunks_[chunks.front()].device;
  devices_[static_cast<size_t>(owner)].keeper->Note(keeper::MemoryEventKind::kMap, sum);
  return CUDA_SUCCESS;
}

bool Memory::AnyIsNew(const std::vector<uint64_t>& chunks) {
  base::MutexLock lock(mutex_);
  for (uint64_t id : chunks) {
    auto found = chunks_.find(id);
    if (found != chunks_.end() && found->second.lent.valid()) return true;
  }
  return false;
}

CUresult Memory::MapRange(int32_t device, uint64_t address, const std::vector<uint64_t>& ids) {
  uint64_t sum = 0;
  for (uint64_t id : ids) {
    sum += chunks_[id].bytes;
    if (chunks_[id].away) return CUDA_ERROR_NOT_READY;  // such a call waits until it is back
  }
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + sum) return CUDA_ERROR_ALREADY_MAPPED;
  if (next != mappings_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.bytes > address) return CUDA_ERROR_ALREADY_MAPPED;
  }
  // Written down before, so that nobody else takes the place or gives a chunk back.
  std::vector<Chunk*> chunks;
  uint64_t at = address;
  for (uint64_t id : ids) {
    chunks.push_back(&chunks_[id]);
    ++chunks.back()->mappings;
    mappings_[at] = {chunks.back()->bytes, id};
    at += chunks.back()->bytes;
  }
  mutex_.Unlock();  // as above
  uint64_t mapped = 0;
  CUresult result = MapChunks(address, chunks, &mapped);
  if (result == CUDA_SUCCESS) {
    result = Access(address, sum, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  mutex_.Lock();
  if (result == CUDA_SUCCESS) return result;
  for (auto& [place, mapping] : TakeMappings(address + mapped, sum - mapped)) {
    --chunks_[mapping.chunk].mappings;
  }
  UnmapRange(address, mapped);
  return result;
}

CUresult Memory::MapChunks(uint64_t address, const std::vector<Chunk*>& chunks, uint64_t* mapped) {
  for (Chunk* chunk : chunks) {
    LONGWIRE_TRY(Import(chunk));
    LONGWIRE_TRY(driver_.cuMemMap(address + *mapped, chunk->bytes, 0, chunk->handle, 0));
    *mapped += chunk->bytes;
  }
  return CUDA_SUCCESS;
}

CUresult Memory::Remap(int32_t device, const Range& range, const std::vector<uint64_t>& chunks,
                       uint64_t moved) {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  uint64_t sum = BytesOf(chunks);
  if (sum == 0 || sum != range.bytes) return CUDA_ERROR_INVALID_HANDLE;
  if (moved > sum) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(mutex_);
  if (!CoversWholeChunks(range.address, range.bytes)) return CUDA_ERROR_INVALID_VALUE;
  // At once: the lock is held, so that nobody maps anything there in between.
  for (auto& [at, mapping] : TakeMappings(range.address, range.bytes)) {
    driver_.cuMemUnmap(at, mapping.bytes);
    --chunks_[mapping.chunk].mappings;
  }
  LONGWIRE_TRY(MapRange(device, range.address, chunks));
  int32_t owner = chunks_[chunks.front()].device;
  devices_[static_cast<size_t>(owner)].keeper->Note(keeper::MemoryEventKind::kRemap, moved);
  return CUDA_SUCCESS;
}

CUresult Memory::Unmap(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  if (!CoversWholeChunks(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  UnmapRange(address, bytes);
  return CUDA_SUCCESS;
}

CUresult Memory::Access(uint64_t address, uint64_t bytes, int32_t device, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = devices_[static_cast<size_t>(device)].handle;
  access.flags = flags;
  return driver_.cuMemSetAccess(address, bytes, &access, 1);
}

CUresult Memory::SetAccess(uint64_t address, uint64_t bytes, int32_t device, bool access) {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  base::MutexLock lock(mutex_);
  if (!CoversWholeChunks(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(Access(address, bytes, device,
                      access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE));
  auto end = mappings_.lower_bound(address + bytes);
  for (auto at = mappings_.find(address); at != end; ++at) at->second.access = access;
  return CUDA_SUCCESS;
}

CUresult Memory::Info(int32_t device, bool may_ask, uint64_t* free, uint64_t* total) {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  keeper::Info info;
  KeeperClient& keeper = *devices_[static_cast<size_t>(device)].keeper;
  if (!keeper.KnownInfo(&info)) {
    if (!may_ask) return kNotYet;
    LONGWIRE_TRY(static_cast<CUresult>(keeper.Info(&info)));
  }
  *free = info.free;
  *total = info.total;
  if (info.total != 0) return CUDA_SUCCESS;
  // Its keeper ended before anybody had asked.
  size_t all = 0;
  CUresult result = driver_.cuDeviceTotalMem_v2(&all, devices_[device].handle);
  *total = all;
  return result;
}

}  // namespace longwire::worker
