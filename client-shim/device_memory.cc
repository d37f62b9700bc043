#include "client-shim/device_memory.h"

#include <algorithm>

#include "client-shim/never_destroyed.h"
#include "client-shim/process.h"
#include "client-shim/properties.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kAlignment = 512;  // of every allocation, as natively
constexpr uint64_t kSlabBytes = uint64_t{2} << 20;
constexpr uint64_t kSmallBytes = uint64_t{512} << 10;  // up to here allocations share slabs
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::vector<DeviceMemory*>& All() {
  static NeverDestroyed<std::vector<DeviceMemory*>> all;
  return *all;
}

void ReleasePoints(std::vector<StreamPoint>& points) {
  for (StreamPoint& point : points) Release(point.stream);
  points.clear();
}

bool Passed(const StreamPoint& point) {
  // A poisoned context runs nothing any more.
  return point.stream->finished.load(std::memory_order_acquire) >= point.position ||
         point.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

// The chunks to lease for that many bytes: the server's classes are 2, 64 and 512 MiB and exact
// sizes from 1 GiB. Costs are per chunk, so they are as large as the request allows.
std::vector<uint64_t> ChunkSizes(uint64_t bytes) {
  if (bytes >= kGiB) return {bytes};
  for (uint64_t size : {2 * kMiB, 64 * kMiB, 512 * kMiB}) {
    if (bytes <= size) return {std::max(size, 64 * kMiB)};
  }
  return {512 * kMiB, 512 * kMiB};
}

std::vector<uint64_t> SmallestChunks(uint64_t bytes) {
  return std::vector<uint64_t>((bytes + 2 * kMiB - 1) / (2 * kMiB), 2 * kMiB);
}

}  // namespace

DeviceMemory::DeviceMemory(int server_ordinal, const wire::DeviceDescription& description,
                           uint64_t granularity)
    : server_ordinal_(server_ordinal), granularity_(std::max(granularity, kSlabBytes)) {
  window_.Add(description.window.base, description.window.bytes);
  for (const wire::LeasedChunk& leased : description.leased) {
    uint64_t address = 0;
    if (window_.Take(leased.bytes, &address)) {
      // Mapped with the first allocation: at this point there is no session to queue it in.
      mapped_[address] = {leased.chunk, leased.bytes};
      unmapped_lease_.push_back(address);
      free_.Add(address, leased.bytes);
    }
  }
}

uint64_t DeviceMemory::RoundUp(uint64_t bytes) const {
  return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

void DeviceMemory::SubmitMap(uint64_t address, const std::vector<uint64_t>& chunks,
                             uint64_t bytes) {
  calls::lwMap map;
  map.device = server_ordinal_;
  map.address = address;
  map.chunk = chunks;
  TheSession().Submit({}, map, 64 + chunks.size() * sizeof(uint64_t));
  for (int accessor : accessors_) SubmitAccess(address, bytes, accessor, true);
}

void DeviceMemory::Map(uint64_t address, const std::vector<Chunk>& chunks) {
  std::vector<uint64_t> ids;
  uint64_t at = address;
  for (const Chunk& chunk : chunks) {
    ids.push_back(chunk.id);
    mapped_[at] = chunk;
    at += chunk.bytes;
  }
  SubmitMap(address, ids, at - address);
  free_.Add(address, at - address);
}

void DeviceMemory::MapFirstLease() {
  for (uint64_t address : unmapped_lease_) {
    SubmitMap(address, {mapped_[address].id}, mapped_[address].bytes);
  }
  unmapped_lease_.clear();
}

void DeviceMemory::SetPeerAccess(int server_device, bool access) {
  std::lock_guard<std::mutex> lock(mutex_);
  MapFirstLease();
  std::erase(accessors_, server_device);
  if (access) accessors_.push_back(server_device);
  // Chunks that lie side by side in one call.
  for (auto entry = mapped_.begin(); entry != mapped_.end();) {
    uint64_t start = entry->first, end = start;
    for (; entry != mapped_.end() && entry->first == end; ++entry) end += entry->second.bytes;
    SubmitAccess(start, end - start, server_device, access);
  }
}

bool DeviceMemory::TakeSmall(uint64_t bytes, uint64_t* address) {
  for (auto& [start, slab] : slabs_) {
    if (slab.free.largest() >= bytes) return slab.free.Take(bytes, address);
  }
  uint64_t start = 0;
  if (!free_.Take(kSlabBytes, &start)) return false;
  Slab& slab = slabs_[start];
  slab.free.Add(start, kSlabBytes);
  return slab.free.Take(bytes, address);
}

bool DeviceMemory::Take(uint64_t bytes, uint64_t* address) {
  if (bytes <= kSmallBytes) return TakeSmall(bytes, address);
  return free_.Take(bytes, address);
}

void DeviceMemory::GiveBack(uint64_t address, uint64_t bytes) {
  auto slab = slabs_.upper_bound(address);
  if (slab != slabs_.begin() && bytes <= kSmallBytes) {
    --slab;
    if (address - slab->first < kSlabBytes) {
      slab->second.free.Add(address, bytes);
      if (slab->second.free.total() == kSlabBytes) {
        free_.Add(slab->first, kSlabBytes);
        slabs_.erase(slab);
      }
      return;
    }
  }
  free_.Add(address, bytes);
}

bool DeviceMemory::CollectRested() {
  bool any = false;
  for (size_t i = 0; i < resting_.size();) {
    Resting& resting = resting_[i];
    if (!std::all_of(resting.points.begin(), resting.points.end(), Passed)) {
      ++i;
      continue;
    }
    ReleasePoints(resting.points);
    GiveBack(resting.address, resting.bytes);
    resting_.erase(resting_.begin() + static_cast<ptrdiff_t>(i));
    any = true;
  }
  return any;
}

bool DeviceMemory::WouldFitRested(uint64_t bytes) {
  FreeRanges joined = free_;
  for (const Resting& resting : resting_) joined.Add(resting.address, resting.bytes);
  uint64_t address = 0;
  return joined.Take(std::max(bytes, bytes <= kSmallBytes ? uint64_t{1} : bytes), &address);
}

bool DeviceMemory::WaitForRested(std::unique_lock<std::mutex>& lock) {
  if (resting_.empty()) return false;
  std::vector<StreamPoint> points = resting_.front().points;
  for (StreamPoint& point : points) Retain(point.stream);
  lock.unlock();
  for (StreamPoint& point : points) AwaitStream(point.stream, point.position);
  ReleasePoints(points);
  lock.lock();
  return true;
}

std::vector<DeviceMemory::Chunk> DeviceMemory::UnmapFreeChunks(uint64_t wanted) {
  std::vector<Chunk> chunks;
  Session& session = TheSession();
  for (auto entry = mapped_.begin(); entry != mapped_.end() && wanted > 0;) {
    auto [address, chunk] = *entry;
    if (chunk.bytes > wanted || !free_.Contains(address, chunk.bytes)) {
      ++entry;
      continue;
    }
    free_.Remove(address, chunk.bytes);
    wanted -= chunk.bytes;
    chunks.push_back(chunk);
    entry = mapped_.erase(entry);
    calls::lwUnmap unmap;
    unmap.address = address;
    unmap.bytes = chunk.bytes;
    uint64_t bytes = chunk.bytes, start = address;
    // The addresses may be used again only when the worker has unmapped them.
    session.CallThen({0, nullptr, wire::kWantsReply}, unmap,
                     [this, start, bytes](CUresult code, std::span<const std::byte>) {
                       if (code != CUDA_SUCCESS) return;
                       std::lock_guard<std::mutex> lock(unmapped_mutex_);
                       unmapped_.push_back({start, bytes});
                     });
  }
  return chunks;
}

CUresult DeviceMemory::Lease(const std::vector<uint64_t>& sizes, std::vector<Chunk>* chunks) {
  calls::lwLease lease;
  lease.device = server_ordinal_;
  lease.bytes = sizes;
  auto answer = TheSession().CallAndWait({}, lease, 64 + sizes.size() * sizeof(uint64_t));
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (answer.reply.chunk.size() != sizes.size()) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < sizes.size(); ++i) chunks->push_back({answer.reply.chunk[i], sizes[i]});
  return CUDA_SUCCESS;
}

void DeviceMemory::Return(const std::vector<Chunk>& chunks) {
  if (chunks.empty()) return;
  calls::lwReturnChunks give_back;
  for (const Chunk& chunk : chunks) give_back.chunk.push_back(chunk.id);
  TheSession().Submit({}, give_back, 64 + chunks.size() * sizeof(uint64_t));
}

CUresult DeviceMemory::Grow(uint64_t bytes) {
  uint64_t needed = RoundUp(bytes <= kSmallBytes ? kSlabBytes : bytes);
  std::vector<Chunk> chunks;
  CUresult result = Lease(ChunkSizes(needed), &chunks);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && ChunkSizes(needed)[0] != needed && needed < kGiB) {
    result = Lease(SmallestChunks(needed), &chunks);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    // Free chunks lie scattered: put them side by side and lease only the rest.
    chunks = UnmapFreeChunks(needed);
    uint64_t have = 0;
    for (const Chunk& chunk : chunks) have += chunk.bytes;
    result = CUDA_SUCCESS;
    if (have < needed) {
      uint64_t rest = needed - have;
      result = Lease(rest >= kGiB ? std::vector<uint64_t>{rest} : SmallestChunks(rest), &chunks);
    }
  }
  uint64_t total = 0, address = 0;
  for (const Chunk& chunk : chunks) total += chunk.bytes;
  {
    std::lock_guard<std::mutex> lock(unmapped_mutex_);
    for (auto [start, length] : unmapped_) window_.Add(start, length);
    unmapped_.clear();
  }
  if (total == 0) return result;
  if (!window_.Take(total, &address)) {
    Return(chunks);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Map(address, chunks);
  return result;
}

bool DeviceMemory::TakeRested(uint64_t bytes, Stream* stream, uint64_t* address) {
  Resting* best = nullptr;
  for (Resting& resting : resting_) {
    if (resting.points.size() != 1 || resting.points[0].stream != stream) continue;
    // The same size only: a piece of a slab or a chunk goes back the way it was taken.
    if (resting.bytes == bytes) best = &resting;
  }
  if (best == nullptr) return false;
  *address = best->address;
  ReleasePoints(best->points);
  resting_.erase(resting_.begin() + (best - &resting_.front()));
  return true;
}

CUresult DeviceMemory::Allocate(Context* context, uint64_t bytes, uint64_t* address,
                                Stream* stream) {
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < bytes || rounded > uint64_t{1} << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  std::unique_lock<std::mutex> lock(mutex_);
  MapFirstLease();
  CollectRested();
  bool reused = stream != nullptr && TakeRested(rounded, stream, address);
  while (!reused && !Take(rounded, address)) {
    if (WouldFitRested(rounded) && WaitForRested(lock)) {
      CollectRested();
      continue;
    }
    CUresult result = Grow(rounded);
    if (result == CUDA_SUCCESS) continue;
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !WaitForRested(lock)) return result;
    CollectRested();
  }
  live_[*address] = {*address, bytes, next_id_++, context->number.load(), context};
  return CUDA_SUCCESS;
}

bool DeviceMemory::Free(uint64_t address, std::vector<StreamPoint> points) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = live_.find(address);
  if (found == live_.end()) {
    ReleasePoints(points);
    return false;
  }
  uint64_t rounded = (found->second.bytes + kAlignment - 1) / kAlignment * kAlignment;
  live_.erase(found);
  if (points.empty()) {
    GiveBack(address, rounded);
  } else {
    resting_.push_back({address, rounded, std::move(points)});
  }
  return true;
}

bool DeviceMemory::Find(uint64_t address, Allocation* allocation) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return false;
  *allocation = std::prev(after)->second;
  return address - allocation->address < allocation->bytes;
}

void DeviceMemory::FreeContext(uint32_t context_number) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = live_.begin(); entry != live_.end();) {
    if (entry->second.context_number != context_number) {
      ++entry;
      continue;
    }
    uint64_t rounded = (entry->second.bytes + kAlignment - 1) / kAlignment * kAlignment;
    GiveBack(entry->first, rounded);
    entry = live_.erase(entry);
  }
}

uint64_t DeviceMemory::FreeLeased() {
  std::lock_guard<std::mutex> lock(mutex_);
  CollectRested();
  uint64_t bytes = free_.total();
  for (const Resting& resting : resting_) bytes += resting.bytes;
  return bytes;
}

bool DeviceMemory::TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (hint % granularity_ == 0 && window_.Contains(hint, bytes)) {
    window_.Remove(hint, bytes);
    *address = hint;
    return true;
  }
  return window_.Take(bytes, address);
}

void DeviceMemory::GiveAddresses(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  window_.Add(address, bytes);
}

bool DeviceMemory::ChunksUnder(const Allocation& allocation, std::vector<uint64_t>* chunks,
                               uint64_t* start) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto entry = mapped_.upper_bound(allocation.address);
  if (entry == mapped_.begin()) return false;
  --entry;
  *start = entry->first;
  uint64_t at = entry->first, end = allocation.address + allocation.bytes;
  for (; at < end && entry != mapped_.end() && entry->first == at; ++entry) {
    chunks->push_back(entry->second.id);
    at += entry->second.bytes;
  }
  return at >= end;
}

CUresult DeviceMemory::LeaseChunks(uint64_t bytes, std::vector<uint64_t>* chunks) {
  std::vector<Chunk> leased;
  CUresult result =
      Lease(bytes >= kGiB ? std::vector<uint64_t>{bytes} : SmallestChunks(bytes), &leased);
  for (const Chunk& chunk : leased) chunks->push_back(chunk.id);
  return result;
}

void DeviceMemory::ReturnChunks(const std::vector<uint64_t>& chunks) {
  calls::lwReturnChunks give_back;
  give_back.chunk = chunks;
  TheSession().Submit({}, give_back, 64 + chunks.size() * sizeof(uint64_t));
}

void SubmitAccess(uint64_t address, uint64_t bytes, int server_device, bool access) {
  calls::lwSetAccess set;
  set.address = address;
  set.bytes = bytes;
  set.device = server_device;
  set.access = access;
  TheSession().Submit({}, set);
}

void CreateDeviceMemory(int server_ordinal, const wire::DeviceDescription& description,
                        uint64_t granularity) {
  All().push_back(new DeviceMemory(server_ordinal, description, granularity));
}

DeviceMemory* MemoryOf(int device) {
  if (device < 0 || static_cast<size_t>(device) >= All().size()) return nullptr;
  return All()[device];
}

bool FindAllocation(uint64_t address, Allocation* allocation) {
  DeviceMemory* memory = MemoryOf(DeviceOfAddress(address));
  return memory != nullptr && memory->Find(address, allocation);
}

void ForgetContextMemory(uint32_t context_number) {
  for (DeviceMemory* memory : All()) memory->FreeContext(context_number);
}

}  // namespace longwire::shim
