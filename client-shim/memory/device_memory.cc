#include "client-shim/memory/device_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/memory/allocation_trace.h"
#include "client-shim/session/reclaim.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/early_copies.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

std::vector<DeviceMemory*>& All() {
  static NeverDestroyed<std::vector<DeviceMemory*>> all;
  return *all;
}

// Of one lease. With the smallest chunks, of 2 MiB, that is 224 GiB.
constexpr size_t kMaxLeasedChunks = wire::kMaxRecordBytes / sizeof(uint64_t) / 8 * 7;

// In pieces no larger than the server's largest chunk.
std::vector<uint64_t> InPieces(const std::vector<uint64_t>& bytes, uint64_t largest_chunk) {
  uint64_t largest = std::max(largest_chunk, base::kDeviceGranularityBytes);
  if (largest_chunk == 0) return bytes;
  std::vector<uint64_t> pieces;
  for (uint64_t rest : bytes) {
    for (; rest > largest; rest -= largest) pieces.push_back(largest);
    pieces.push_back(rest);
  }
  return pieces;
}

Stream* StreamOf(const mempool::Mark& mark) { return static_cast<Stream*>(mark.stream); }

}  // namespace

DeviceMemory::DeviceMemory(ClientSession& session, int server_ordinal,
                           const wire::DeviceDescription& description, uint64_t granularity)
    : session_(session),
      server_ordinal_(server_ordinal),
      pool_(*this, {description.window.base, description.window.bytes}, granularity) {
  for (const wire::LeasedChunk& leased : description.leased) {
    FirstLease first{0, {leased.chunk, leased.bytes}};
    // Mapped with the first allocation: at this point there is no session to queue it in.
    if (pool_.AddLeased(first.chunk, &first.address)) first_lease_.push_back(first);
  }
}

int DeviceMemory::Lease(const std::vector<uint64_t>& wanted, std::vector<mempool::Chunk>* chunks) {
  std::vector<uint64_t> bytes = InPieces(wanted, session_.opened().largest_chunk);
  // No device has as much memory as the chunks that a record cannot name.
  if (bytes.size() > kMaxLeasedChunks) return CUDA_ERROR_OUT_OF_MEMORY;
  calls::lwLease lease;
  lease.device = server_ordinal_;
  lease.bytes = bytes;
  auto answer = session_.CallAndWait({}, lease, lease.EncodedBytes());
  LONGWIRE_TRY(answer.code);
  SetLackReason("");
  if (answer.reply.chunk.size() != bytes.size()) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < bytes.size(); ++i) chunks->push_back({answer.reply.chunk[i], bytes[i]});
  return CUDA_SUCCESS;
}

void DeviceMemory::Return(const std::vector<mempool::Chunk>& chunks) {
  calls::lwReturnChunks give_back;
  for (const mempool::Chunk& chunk : chunks) give_back.chunk.push_back(chunk.id);
  begun_.fetch_add(1);
  session_.CallThen({0, nullptr, wire::kWantsReply}, give_back,
                    [this](CUresult, std::span<const std::byte>) { CountDone(); });
}

int DeviceMemory::Map(uint64_t address, const std::vector<mempool::Chunk>& chunks) {
  calls::lwMap map;
  map.device = server_ordinal_;
  map.address = address;
  uint64_t bytes = 0;
  for (const mempool::Chunk& chunk : chunks) {
    map.chunk.push_back(chunk.id);
    bytes += chunk.bytes;
  }
  uint64_t position = session_.Submit({}, map, map.EncodedBytes());
  if (position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  for (int accessor : accessors_) SubmitAccess(session_, address, bytes, accessor, true);
  return CUDA_SUCCESS;
}

void DeviceMemory::Unmap(const mempool::Range& range) {
  calls::lwUnmap unmap;
  unmap.address = range.address;
  unmap.bytes = range.bytes;
  begun_.fetch_add(1);
  session_.CallThen({0, nullptr, wire::kWantsReply}, unmap,
                    [this, range](CUresult code, std::span<const std::byte>) {
                      if (code == CUDA_SUCCESS) {
                        base::MutexLock lock(unmapped_mutex_);
                        unmapped_.push_back(range);
                      }
                      CountDone();
                    });
}

int DeviceMemory::Remap(const mempool::Range& unmap, const std::vector<mempool::Chunk>& chunks,
                        uint64_t moved) {
  calls::lwRemap remap;
  remap.device = server_ordinal_;
  remap.address = unmap.address;
  remap.unmap = unmap.bytes;
  remap.moved = moved;
  for (const mempool::Chunk& chunk : chunks) remap.chunk.push_back(chunk.id);
  uint64_t position = session_.SubmitInstead(moving_key_, remap, remap.EncodedBytes());
  return position == ClientSession::kNoPosition ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

void DeviceMemory::CountDone() {
  done_.fetch_add(1);
  session_.WakeWaiters();
}

std::vector<mempool::Range> DeviceMemory::TakeUnmapped() {
  base::MutexLock lock(unmapped_mutex_);
  return std::exchange(unmapped_, {});
}

bool DeviceMemory::Pending() { return done_.load() != begun_.load(); }

bool DeviceMemory::Passed(const mempool::Mark& mark) {
  Stream* stream = StreamOf(mark);
  // After a sticky error a context runs nothing any more.
  return stream->finished.load(std::memory_order_acquire) >= mark.position ||
         stream->context->sticky.load(std::memory_order_acquire) != 0;
}

bool DeviceMemory::PutAllBehind(const mempool::Mark& mark) {
  return shim::PutAllBehind(StreamOf(mark), mark.position);
}

void DeviceMemory::Drop(const mempool::Mark& mark) { Release(StreamOf(mark)); }

void DeviceMemory::MapFirstLease() {
  for (const FirstLease& first : first_lease_) Map(first.address, {first.chunk});
  first_lease_.clear();
}

void DeviceMemory::SetPeerAccess(int server_device, bool access) {
  base::MutexLock lock(mutex_);
  MapFirstLease();
  std::erase(accessors_, server_device);
  if (access) accessors_.push_back(server_device);
  for (const mempool::Range& range : pool_.Mapped()) {
    SubmitAccess(session_, range.address, range.bytes, server_device, access);
  }
}

void DeviceMemory::WaitForWork() {
  std::vector<mempool::Mark> marks = pool_.OldestMarks();
  for (const mempool::Mark& mark : marks) Retain(StreamOf(mark));
  mutex_.Unlock();
  for (const mempool::Mark& mark : marks) {
    static_cast<void>(AwaitStream(StreamOf(mark), mark.position));  // see Answered
    Release(StreamOf(mark));
  }
  mutex_.Lock();
}

void DeviceMemory::WaitForDevice() {
  uint64_t begun = begun_.load();
  mutex_.Unlock();
  static_cast<void>(session_.WaitUntil([&] { return done_.load() >= begun; }));
  mutex_.Lock();
}

CUresult DeviceMemory::Answered(FunctionRef<int()> ask) {
  base::MutexLock lock(mutex_);
  MapFirstLease();
  while (true) {
    int code = ask();
    if (code >= 0) return static_cast<CUresult>(code);
    if (code == mempool::Pool::kWaitForWork) {
      WaitForWork();
    } else {
      WaitForDevice();
    }
    if (session_.ended() != CUDA_SUCCESS) return session_.ended();
  }
}

CUresult DeviceMemory::Allocate(Context* context, uint64_t bytes, uint64_t* address,
                                Stream* stream) {
  if (bytes > base::kMaxMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = Answered([&] {
    mutex_.AssertHeld();
    int code = pool_.Place(bytes, stream, address);
    if (code != mempool::kDone) return code;
    base::MutexLock live_lock(live_mutex_);
    live_[*address] = {
        *address, bytes, next_id_++, context->number.load(), context, session_.newest_work()};
    TraceAllocation(server_ordinal_, *address, bytes);
    return mempool::kDone;
  });
  Changed();
  return result;
}

bool DeviceMemory::TakeLive(uint64_t address, Allocation* allocation) {
  base::MutexLock lock(live_mutex_);
  auto found = live_.find(address);
  if (found == live_.end()) return false;
  *allocation = found->second;
  live_.erase(found);
  TraceFree(server_ordinal_, address, allocation->bytes);
  return true;
}

bool DeviceMemory::Free(uint64_t address, std::vector<StreamPoint> points, mempool::Freed freed) {
  base::MutexLock lock(mutex_);
  Allocation allocation;
  if (!TakeLive(address, &allocation)) {
    for (StreamPoint& point : points) Release(point.stream);
    return false;
  }
  std::vector<mempool::Mark> marks;
  for (const StreamPoint& point : points) marks.push_back({point.stream, point.position});
  pool_.Free(address, allocation.bytes, std::move(marks), freed);
  lock.Unlock();
  Changed();
  return true;
}

Allocation* DeviceMemory::StillLive(const Allocation& allocation) {
  auto found = live_.find(allocation.address);
  bool same = found != live_.end() && found->second.id == allocation.id;
  return same ? &found->second : nullptr;
}

bool DeviceMemory::MayMove(const Allocation& source, const Allocation& target, uint64_t work) {
  if (!mutex_.TryLock()) return false;  // it may be held for a lease
  base::MutexLock lock(mutex_, base::AdoptLock());
  if (!accessors_.empty()) return false;
  uint64_t moved = 0;
  if (!pool_.CanMove(source.address, target.address, &moved)) return false;
  // The whole last chunk of the source moves: behind the source, the target must still be unused.
  if (moved != source.bytes && target.work != work) return false;
  base::MutexLock live_lock(live_mutex_);
  Allocation* grown = StillLive(target);
  if (grown == nullptr || StillLive(source) == nullptr || grown->grown) return false;
  grown->grown = true;
  return true;
}

bool DeviceMemory::Move(const Allocation& source, const Allocation& target, uint64_t key) {
  base::MutexLock lock(mutex_);
  {
    base::MutexLock live_lock(live_mutex_);
    if (StillLive(source) == nullptr || StillLive(target) == nullptr) return false;
  }
  moving_key_ = key;
  if (!pool_.Move(source.address, target.address)) return false;
  lock.Unlock();
  Changed();
  Allocation moved;
  return TakeLive(source.address, &moved);
}

void DeviceMemory::MarkShared(uint64_t address) {
  base::MutexLock live_lock(live_mutex_);
  auto found = live_.find(address);
  if (found != live_.end()) found->second.shared = true;
}

bool DeviceMemory::Find(uint64_t address, Allocation* allocation) {
  base::MutexLock lock(live_mutex_);
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return false;
  *allocation = std::prev(after)->second;
  return address - allocation->address < allocation->bytes;
}

void DeviceMemory::FreeContext(uint32_t context_number) {
  base::MutexLock lock(mutex_);
  base::MutexLock live_lock(live_mutex_);
  for (auto entry = live_.begin(); entry != live_.end();) {
    const auto& [address, allocation] = *entry;
    if (allocation.context_number != context_number) {
      ++entry;
      continue;
    }
    TraceFree(server_ordinal_, address, allocation.bytes);
    pool_.Free(address, allocation.bytes, {}, mempool::Freed::kForAll);
    entry = live_.erase(entry);
  }
  live_lock.Unlock();
  lock.Unlock();
  Changed();
}

uint64_t DeviceMemory::FreeLeased() {
  base::MutexLock lock(mutex_);
  pool_.Collect();
  return pool_.idle() + pool_.resting();
}

bool DeviceMemory::TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address) {
  CUresult result = Answered([&] {
    mutex_.AssertHeld();
    return pool_.TakeAddresses(bytes, hint, address);
  });
  return result == CUDA_SUCCESS;
}

void DeviceMemory::GiveAddresses(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  pool_.GiveAddresses(address, bytes);
}

bool DeviceMemory::ChunksUnder(const Allocation& allocation, std::vector<uint64_t>* chunks,
                               uint64_t* start) {
  base::MutexLock lock(mutex_);
  std::vector<mempool::Chunk> under;
  if (!pool_.ChunksUnder({allocation.address, allocation.bytes}, &under, start)) return false;
  for (const mempool::Chunk& chunk : under) chunks->push_back(chunk.id);
  return true;
}

CUresult DeviceMemory::LeaseChunks(uint64_t bytes, std::vector<uint64_t>* chunks) {
  std::vector<mempool::Chunk> leased;
  CUresult result = Answered([&] {
    mutex_.AssertHeld();
    return pool_.LeaseOutside(bytes, &leased);
  });
  for (const mempool::Chunk& chunk : leased) chunks->push_back(chunk.id);
  Changed();
  return result;
}

void DeviceMemory::ReturnChunks(const std::vector<uint64_t>& chunks) {
  calls::lwReturnChunks give_back;
  give_back.chunk = chunks;
  session_.Submit({}, give_back, give_back.EncodedBytes());
}

uint64_t DeviceMemory::GiveBackFree(uint64_t bytes) {
  if (bytes == 0) return 0;
  base::MutexLock lock(mutex_);
  MapFirstLease();
  return pool_.GiveBack(bytes, false);
}

uint64_t DeviceMemory::FreeInChunks(uint64_t watch, bool* watched) {
  base::MutexLock lock(mutex_);
  pool_.Collect();
  // What rests becomes free without a call that could report it.
  if (watch != 0 && pool_.resting() == 0) {
    watch_ = watch;
    *watched = true;
  }
  return pool_.idle_chunks();
}

void DeviceMemory::Changed() {
  if (watch_.load(std::memory_order_relaxed) == 0) return;
  if (uint64_t request = watch_.exchange(0)) ReportFree(session_, server_ordinal_, request);
}

void SubmitAccess(ClientSession& session, uint64_t address, uint64_t bytes, int server_device,
                  bool access) {
  calls::lwSetAccess set;
  set.address = address;
  set.bytes = bytes;
  set.device = server_device;
  set.access = access;
  session.Submit({}, set);
}

void CreateDeviceMemory(ClientSession& session, int server_ordinal) {
  const wire::OpenReply& opened = session.opened();
  const wire::DeviceDescription& description = opened.devices[server_ordinal];
  const uint64_t granularity = opened.allocation_granularity;
  All().push_back(new DeviceMemory(session, server_ordinal, description, granularity));
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
