// Pushes: what the program wrote to mirrored memory is copied to the device's.
//
// Before work is queued, the memory is compared. If the program queues work after work without
// waiting, only the first piece of work is preceded by a comparison. The others wait on the device
// for one comparison that a thread of the shim makes a moment later: they see what the program
// wrote before them and perhaps what it wrote after, as work that is queued natively. A wait of the
// program makes the comparison at once. With LONGWIRE_DISABLE=late-comparisons each piece of work
// has its own.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "client-shim/copy/speculative_uploads.h"
#include "client-shim/mirror/border_states.h"
#include "client-shim/mirror/file_mirrors.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/words.h"
#include "client-shim/session/session.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/page_delta.h"
#include "wire/rings/spinning.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// Comparing fewer bytes takes less time than a promise.
constexpr uint64_t kMinLateBytes = uint64_t{2} << 10;
// Limits the work that waits for one comparison in the worker.
constexpr uint32_t kMaxPromised = 4096;
// The pause between comparisons, and so the delay of queued work: about five launches of a Python
// program. Where comparing takes long, it takes a third of the time.
constexpr std::chrono::nanoseconds kLater = std::chrono::microseconds{50};
// After this many pauses without a promise the comparing thread sleeps until there is one.
constexpr int kIdlePauses = 20;

// Sends what changed; true if anything did.
bool Push(Mirrors& mirrors, Mirror& mirror) LONGWIRE_REQUIRES(mirrors.mutex) {
  // Whole pages may be sent only while nothing on the device can change them.
  bool quiet = !mirrors.handed.load() && mirrors.begun == 0;
  wire::PageForm form = quiet                  ? wire::PageForm::kWhole
                        : mirror.range.managed ? wire::PageForm::kChecked
                                               : wire::PageForm::kMasked;
  const std::span<const std::byte> memory = NowOf(mirror);
  if (!quiet && !mirror.range.managed && AreIndependent(*mirror.channel)) {
    mirrors.compared += memory.size();
    return SendWords(mirrors, mirror, 0, memory);
  }
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
    if (form == wire::PageForm::kChecked) mirrors.AwaitConflict();
    stream->session->Submit(mirror.channel->where(), push, push.EncodedBytes());
    stream->session->counts().uploaded.fetch_add(delta.size(), std::memory_order_relaxed);
    any = true;
  }
  mirrors.compared += memory.size();
  return any;
}

// The promised version of the channel's event: there was nothing to send.
void Pass(Channel& channel) {
  calls::lwEventPass pass;
  pass.event = channel.event;
  pass.version = ++channel.version;
  channel.promised = false;
  channel.stream->session->Submit({channel.stream->context_number, nullptr, 0}, pass);
}

void Compare(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  std::vector<Channel*> touched;
  mirrors.compared = 0;
  const bool whole = PushAsStates(mirrors);
  if (!whole) TakeStates(mirrors);
  for (auto& [address, mirror] : mirrors.by_address) {
    if (whole || !IsThere(*mirror) || !Push(mirrors, *mirror)) continue;
    if (std::find(touched.begin(), touched.end(), mirror->channel.get()) == touched.end()) {
      touched.push_back(mirror->channel.get());
    }
  }
  // If the channel's next version was promised, this record is that version.
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
  stream->session->Submit({stream->context_number, stream, 0}, wait);
}

// Kernels on other servers do not reach the channel's memory.
bool Reaches(const Stream& stream, const Channel& channel) {
  return stream.session == channel.stream->session;
}

// Lets the stream's later work wait for what was sent.
void Order(Mirrors& mirrors, Stream* stream) LONGWIRE_REQUIRES(mirrors.mutex) {
  uint64_t seen = stream->mirrors_seen.exchange(mirrors.sent);
  for (auto& [number, channel] : mirrors.channels) {
    if (!Reaches(*stream, *channel)) continue;
    if (channel->sent <= seen || channel->stream->finished.load() >= channel->position) continue;
    Await(*channel, channel->sent_version, stream);
  }
}

// The thread that makes promised comparisons.
void CompareLater(void*) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds
  Mirrors& mirrors = TheMirrors();
  base::MutexLock lock(mirrors.mutex);
  for (int without = 0;;) {
    if (without == kIdlePauses) {
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

// Starts that thread at its first call. False if there is none.
bool HasComparer() {
  static const bool has = !wire::IsSwitchedOff("late-comparisons") && wire::AllowedCores() > 1 &&
                          StartThread("longwire-late", CompareLater, nullptr);
  return has;
}

bool MayBeLater(const Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  return mirrors.works_since_wait != 0 && mirrors.compared >= kMinLateBytes &&
         mirrors.works_promised < kMaxPromised && HasComparer();
}

// Lets the stream's later work wait for the next comparison.
void Promise(Mirrors& mirrors, Stream* stream) LONGWIRE_REQUIRES(mirrors.mutex) {
  Order(mirrors, stream);
  ++mirrors.works_promised;
  if (stream->mirrors_awaited.exchange(mirrors.comparison) == mirrors.comparison) return;
  for (auto& [number, channel] : mirrors.channels) {
    if (!Reaches(*stream, *channel)) continue;
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
  channel.position = channel.stream->session->Submit(channel.where(), record);
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
  if (mirrors.watcher_sleeps) mirrors.work_begun.NotifyOne();
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
  // Fails only if the session has ended: then no work starts.
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
  // Memory that a queued copy has yet to read is compared before the program waits for the copy.
  mirrored_reads.load() != 0 ? Compare(mirrors) : KeepPromise(mirrors);
  mirrors.works_since_wait = 0;
  ++mirrors.waits;
}

}  // namespace longwire::shim
