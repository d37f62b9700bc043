// What the program wrote into mirrored memory goes to the device.
//
// Before work is handed over the memory is compared. Where the program hands over work after work
// without waiting, only the first is preceded by that. The others wait on the device's side for a
// comparison that is made a moment later, for many of them, by a thread of ours: they see what the
// program wrote before them, and perhaps some that it wrote after, as work that is queued natively.
// What the program waits for is compared at once. LONGWIRE_DISABLE=late-comparisons: every work is
// preceded by its own.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "client-shim/copy/speculative_uploads.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/session/session.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/page_delta.h"
#include "wire/spinning.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// Less is compared sooner than promised.
constexpr uint64_t kLeastLate = uint64_t{2} << 10;
// What waits for one comparison in the worker is bounded.
constexpr uint32_t kMostPromised = 4096;
// Queued work starts at most about this much later: some five launches of a Python program. Where
// so much is mirrored that comparing takes long, a third of the time goes to that.
constexpr std::chrono::nanoseconds kLater = std::chrono::microseconds{50};
// After so many times that nothing was promised the comparer sleeps until something is.
constexpr int kTimesWithout = 20;

// True if something had changed.
bool Push(Mirrors& mirrors, Mirror& mirror) LONGWIRE_REQUIRES(mirrors.mutex) {
  // Unchanged bytes may go along only while the device has nothing to change them.
  bool quiet = !mirrors.handed.load() && mirrors.begun == 0;
  wire::PageForm form = quiet                  ? wire::PageForm::kWhole
                        : mirror.range.managed ? wire::PageForm::kChecked
                                               : wire::PageForm::kMasked;
  std::span<const std::byte> memory = mirror.memory();
  std::vector<std::byte> delta;
  bool any = false;
  for (uint64_t at = 0; at < memory.size();) {
    delta.clear();
    at += wire::AppendDelta(memory.subspan(at), mirror.shadow + at, at, form,
                            wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
    if (delta.empty()) continue;
    Stream* stream = mirror.channel->stream;
    CUresult room = AwaitStream(stream, AwaitedForRoom(stream));
    if (room != CUDA_SUCCESS) break;  // the context has failed
    calls::lwMirrorPush push;
    push.mirror = mirror.id;
    push.delta = delta;
    TheSession().Submit(mirror.channel->where(), push, 64 + delta.size());
    TheSession().counts().uploaded.fetch_add(delta.size(), std::memory_order_relaxed);
    any = true;
  }
  mirrors.compared += memory.size();
  return any;
}

// Queued work waits for nothing of the channel.
void Pass(Channel& channel) {
  calls::lwEventPass pass;
  pass.event = channel.event;
  pass.version = ++channel.version;
  channel.promised = false;
  TheSession().Submit({channel.stream->context_number, nullptr, 0}, pass);
}

void Compare(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  std::vector<Channel*> touched;
  mirrors.compared = 0;
  for (auto& [address, mirror] : mirrors.by_address) {
    if (!IsThere(*mirror) || !Push(mirrors, *mirror)) continue;
    if (std::find(touched.begin(), touched.end(), mirror->channel.get()) == touched.end()) {
      touched.push_back(mirror->channel.get());
    }
  }
  // In a channel whose next version was promised this is that version.
  for (Channel* channel : touched) RecordSent(mirrors, *channel);
  if (mirrors.works_promised == 0) return;
  for (auto& [number, channel] : mirrors.channels) {
    if (channel->promised) Pass(*channel);
  }
  mirrors.works_promised = 0;
  ++mirrors.comparison;
}

void Await(const Channel& channel, uint64_t version, Stream* stream) {
  calls::lwStreamWaitEvent wait;
  wait.event = channel.event;
  wait.version = version;
  wait.flags = 0;
  TheSession().Submit({stream->context_number, stream, 0}, wait);
}

// Lets the stream's later work wait for what was sent.
void Order(Mirrors& mirrors, Stream* stream) LONGWIRE_REQUIRES(mirrors.mutex) {
  uint64_t seen = stream->mirrors_seen.exchange(mirrors.sent);
  for (auto& [number, channel] : mirrors.channels) {
    if (channel->sent <= seen || channel->stream->finished.load() >= channel->position) continue;
    Await(*channel, channel->sent_version, stream);
  }
}

// The comparer's thread.
void CompareLater(void*) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  for (int without = 0;;) {
    if (without == kTimesWithout) {
      mirrors.comparer_sleeps = true;
      while (mirrors.works_promised == 0) mirrors.promise.Wait(lock);
      mirrors.comparer_sleeps = false;
    }
    without = mirrors.works_promised == 0 ? without + 1 : 0;
    auto begin = std::chrono::steady_clock::now();
    KeepPromise(mirrors);
    std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    lock.Unlock();
    std::this_thread::sleep_for(std::max(kLater, 2 * took));
    lock.Lock();
  }
}

// Whether there is somebody to do it later.
bool HasComparer() {
  static const bool has = !wire::IsSwitchedOff("late-comparisons") && wire::AllowedCores() > 1 &&
                          StartThread("longwire-late", CompareLater, nullptr);
  return has;
}

bool MayBeLater(const Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  return mirrors.works_since_wait != 0 && mirrors.compared >= kLeastLate &&
         mirrors.works_promised < kMostPromised && HasComparer();
}

// Lets the stream's later work wait for the next comparison.
void Promise(Mirrors& mirrors, Stream* stream) LONGWIRE_REQUIRES(mirrors.mutex) {
  Order(mirrors, stream);
  ++mirrors.works_promised;
  if (stream->mirrors_awaited.exchange(mirrors.comparison) == mirrors.comparison) return;
  for (auto& [number, channel] : mirrors.channels) {
    channel->promised = true;
    Await(*channel, channel->version + 1, stream);
  }
  if (mirrors.comparer_sleeps) mirrors.promise.NotifyOne();
}

}  // namespace

void RecordSent(Mirrors& mirrors, Channel& channel) {
  calls::lwEventRecord record;
  record.event = channel.event;
  record.version = channel.sent_version = ++channel.version;
  record.flags = 0;
  channel.promised = false;
  channel.position = TheSession().Submit(channel.where(), record);
  channel.sent = ++mirrors.sent;
}

void KeepPromise(Mirrors& mirrors) {
  if (mirrors.works_promised != 0) Compare(mirrors);
}

void DeviceWork::Begin(Stream* stream, Sends sends) {
  if (stream->capture.load() != nullptr) return;
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  if (sends == Sends::kPerhapsLater && MayBeLater(mirrors)) {
    Promise(mirrors, stream);
  } else {
    Compare(mirrors);
    Order(mirrors, stream);
  }
  mirrors.handed.store(true);
  ++mirrors.works;
  ++mirrors.works_since_wait;
  ++mirrors.begun;
  begun_ = true;
}

void DeviceWork::End() {
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  --mirrors.begun;
}

void SendHostWrites() {
  if (!AnyMirrors()) return;
  Mirrors& mirrors = TheMirrors();
  std::vector<StreamPoint> points;
  {
    base::MutexLock lock(mirrors.mutex);
    Compare(mirrors);
    for (auto& [number, channel] : mirrors.channels) {
      if (channel->stream->finished.load() >= channel->position) continue;
      Retain(channel->stream);
      points.push_back({channel->stream, channel->position});
    }
  }
  // If the session has ended nothing starts behind it.
  static_cast<void>(AwaitWork(points));
}

void PushHostWrites() {
  if (!AnyMirrors()) return;
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  Compare(mirrors);
}

void SendWhatWorkAwaits() {
  if (!AnyMirrors()) return;
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  // What the program wrote for a copy that its stream has not reached goes before the wait for it.
  mirrored_reads.load() != 0 ? Compare(mirrors) : KeepPromise(mirrors);
  mirrors.works_since_wait = 0;
}

}  // namespace longwire::shim
