#include "client-shim/stream/host_writes.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

// If more writes are pending, the streams of the oldest count as writing anywhere.
constexpr size_t kMaxWrites = 1024;

struct Write {
  Stream* stream;  // retained
  uint64_t position;
  uint64_t address;
  uint64_t bytes;
  WriteOrder order;
};

struct HostWrites {
  std::atomic<size_t> count{0};
  base::Mutex mutex{base::ranks::kHostWrites};
  std::vector<Write> pending LONGWIRE_GUARDED_BY(mutex);
};

HostWrites& TheHostWrites() {
  static NeverDestroyed<HostWrites> writes;
  return *writes;
}

bool Over(const Write& write) {
  return write.stream->finished.load(std::memory_order_acquire) >= write.position ||
         write.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

void Prune(HostWrites& writes) LONGWIRE_REQUIRES(writes.mutex) {
  std::erase_if(writes.pending, [](const Write& write) {
    bool over = Over(write);
    if (over) Release(write.stream);
    return over;
  });
  writes.count.store(writes.pending.size());
}

enum class Writers { kAll, kCopies, kLate };

bool Pending(uint64_t address, uint64_t bytes, Writers writers) {
  HostWrites& writes = TheHostWrites();
  if (writes.count.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(writes.mutex);
  Prune(writes);
  for (const Write& write : writes.pending) {
    if (writers == Writers::kCopies && write.bytes == kAnywhere) continue;
    if (writers == Writers::kLate && write.order == WriteOrder::kInStream) continue;
    bool apart = write.bytes != kAnywhere &&
                 (write.address >= address + bytes || address >= write.address + write.bytes);
    if (!apart) return true;
  }
  return false;
}

}  // namespace

void NoteHostWrite(Stream* stream, uint64_t position, uint64_t address, uint64_t bytes,
                   WriteOrder order) {
  HostWrites& writes = TheHostWrites();
  base::MutexLock lock(writes.mutex);
  if (writes.pending.size() >= kMaxWrites) Prune(writes);
  if (writes.pending.size() >= kMaxWrites) {
    // One entry for the stream stands for all of them.
    for (Write& write : writes.pending) {
      if (write.stream != stream) continue;
      bool late = order == WriteOrder::kLate || write.order == WriteOrder::kLate;
      write = {stream, std::max(position, write.position), 0, kAnywhere,
               late ? WriteOrder::kLate : WriteOrder::kInStream};
      return;
    }
  }
  Retain(stream);
  writes.pending.push_back({stream, position, address, bytes, order});
  writes.count.store(writes.pending.size());
}

bool HostWritePending(uint64_t address, uint64_t bytes) {
  return Pending(address, bytes, Writers::kAll);
}

bool LateHostWritePending(uint64_t address, uint64_t bytes) {
  return Pending(address, bytes, Writers::kLate);
}

bool LateWritesAnywhere() {
  HostWrites& writes = TheHostWrites();
  if (writes.count.load(std::memory_order_acquire) == 0) return false;
  std::vector<StreamPoint> late;
  {
    base::MutexLock lock(writes.mutex);
    Prune(writes);
    for (const Write& write : writes.pending) {
      if (write.order == WriteOrder::kInStream || write.bytes != kAnywhere) continue;
      Retain(write.stream);
      late.push_back({write.stream, write.position});
    }
  }
  for (const StreamPoint& point : late) {
    WantProgress(point.stream, point.position);
    Release(point.stream);
  }
  return !late.empty();
}

bool HostCopyPending(uint64_t address, uint64_t bytes) {
  return Pending(address, bytes, Writers::kCopies);
}

}  // namespace longwire::shim
