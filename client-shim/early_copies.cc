#include "client-shim/early_copies.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "client-shim/context.h"
#include "client-shim/host_writes.h"
#include "client-shim/mirrors.h"
#include "client-shim/never_destroyed.h"
#include "client-shim/options.h"
#include "client-shim/sharing.h"

namespace longwire::shim {
namespace {

struct EarlyCopies {
  std::atomic<uint64_t> newest{0};  // position of the newest one
  std::mutex mutex;
  std::vector<Stream*> streams;  // retained, that have unfinished ones
};

EarlyCopies& TheEarlyCopies() {
  static NeverDestroyed<EarlyCopies> copies;
  return *copies;
}

bool Finished(const Stream* copying) {
  return copying->finished.load(std::memory_order_acquire) >= copying->sync_copy.load();
}

// Whether later work of the stream waits for the copying one's by itself.
bool IsOrdered(const Stream* stream, const Stream* copying) {
  if (stream == nullptr) return false;
  if (stream == copying) return true;
  return copying->kind == StreamKind::kLegacy && stream->owner == copying->owner &&
         stream->kind != StreamKind::kNonBlocking;
}

bool HasUnorderedStreams(const Stream* copying) {
  std::lock_guard<std::mutex> lock(copying->context->mutex);
  return std::ranges::any_of(copying->context->streams, [&](const Stream* stream) {
    return !stream->internal && !stream->destroyed.load() && !IsOrdered(stream, copying);
  });
}

// Nothing is unfinished but early copies: the next one finishes whatever others do or wait for.
bool NothingElseIsUnfinished() {
  bool nothing = true;
  for (StreamPoint& point : UnfinishedWorkOfAll()) {
    nothing &= point.position <= point.stream->sync_copy.load();
    Release(point.stream);
  }
  return nothing;
}

}  // namespace

bool MayReturnEarly(Stream* stream) {
  static const bool never = ProcessOptions().Disabled("early-copies");
  if (never || MemoryIsShared()) return false;
  if (NothingElseIsUnfinished()) return true;
  // The copy would end a wait for earlier work, of which the program must not see anything missing.
  return !HasUnorderedStreams(stream) && !AnyMirrors() && !HostWritePending(0, kAnywhere);
}

void NoteEarlyCopy(Stream* stream, uint64_t position) {
  EarlyCopies& copies = TheEarlyCopies();
  std::lock_guard<std::mutex> lock(copies.mutex);
  stream->sync_copy.store(position);
  if (std::ranges::find(copies.streams, stream) == copies.streams.end()) {
    Retain(stream);
    copies.streams.push_back(stream);
  }
  copies.newest.store(std::max(copies.newest.load(), position), std::memory_order_release);
}

void AwaitEarlyCopies(Stream* stream) {
  EarlyCopies& copies = TheEarlyCopies();
  uint64_t newest = copies.newest.load(std::memory_order_acquire);
  if (stream != nullptr && stream->early_seen.load(std::memory_order_acquire) >= newest) return;
  std::vector<StreamPoint> points;
  {
    std::lock_guard<std::mutex> lock(copies.mutex);
    std::erase_if(copies.streams, [&](Stream* copying) {
      bool over = Finished(copying);
      if (!over && !IsOrdered(stream, copying)) {
        Retain(copying);
        points.push_back({copying, copying->sync_copy.load()});
      }
      if (over) Release(copying);
      return over;
    });
  }
  for (StreamPoint& point : points) {
    AwaitStream(point.stream, point.position);
    Release(point.stream);
  }
  if (stream != nullptr) stream->early_seen.store(newest, std::memory_order_release);
}

}  // namespace longwire::shim
