#include "link/transport/stream_pump.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/start_thread.h"
#include "link/transport/codes.h"
#include "link/transport/spinning.h"
#include "wire/rings/spinning.h"
#include "wire/switches.h"

namespace longwire::transport {
namespace {

using Clock = std::chrono::steady_clock;

// The last bytes of a session are dropped if the far end does not take them in this time.
constexpr std::chrono::milliseconds kStopTime{1000};
// While the far end may be out of room, the ring is polled this often for bytes to acknowledge.
constexpr std::chrono::milliseconds kAckLook{1};
// While a write is blocked or the far end has no room, no thread sleeps on the ring: its closing is
// polled for.
constexpr std::chrono::milliseconds kEndLook{200};
// After this idle time the rings' memory is returned, and the last bytes are acknowledged.
constexpr std::chrono::milliseconds kRestAfter{500};
// What a message runs through stays in the caches this long, mostly.
constexpr std::chrono::milliseconds kWarmEvery{1};
// While an answer goes first no read is pending; a broken connection is noticed this many polls
// late.
constexpr int kRingLooks = 16;

}  // namespace

StreamPump::StreamPump(MessageStream& stream, RelayEnd& relay, TrafficCounters& counters,
                       Spinning spinning)
    : stream_(stream),
      counters_(counters),
      spinning_(spinning),
      tells_waits_apart_(!wire::IsSwitchedOff("early-wakes")),
      wakes_early_(tells_waits_apart_ && spinning == Spinning::kYes),
      relay_(relay) {}

StreamPump::Outcome StreamPump::Run() {
  std::thread sleeper;
  polls_ring_ = !base::StartThread(&sleeper, [this] { Sleeper(); });
  stream_.StartRead();
  std::optional<SpinPermit> permit;
  auto moved_at = Clock::now();
  int ring_polls = 0;  // in a row without polling the connection, which is slower
  while (!outcome_) {
    bool ring_only = AnswerGoesFirst(Clock::now()) && ++ring_polls < kRingLooks;
    if (!ring_only) ring_polls = 0;
    Event event = ring_only ? Event::kNone : stream_.Wait(wire::Deadline{});
    HandleEvent(event);
    if (outcome_) break;
    if (OnlyKeepsWarm(event)) event = Event::kNone;
    bool moved = Send();
    CheckForEnd();
    if (outcome_) break;
    if (moved || event != Event::kNone) {
      auto now = Clock::now();
      if (moved) answers_.Sent(now);
      Waited(now - moved_at, event == Event::kRead, moved);
      Moved(now);
      moved_at = now;
      if (!AnswerGoesFirst(now)) ReadOn();
      continue;
    }
    bool spins = spinning_ == Spinning::kYes;
    if (spins && !permit && !awake_spin_) permit.emplace();
    auto now = Clock::now();
    bool soon = permit && permit->granted() && now - moved_at < waits_[awaited_].Spin();
    if (!soon) permit.reset();
    if (soon || (spins && StaysAwake(now))) {
      if (!AnswerGoesFirst(now)) ReadOn();
      KeepWarm(now);
      sched_yield();
      continue;
    }
    awake_spin_.reset();
    ReadOn();
    const uint64_t sent = relay_.sent();
    const bool received = Sleep() == Event::kRead;
    auto woken_at = Clock::now();
    Waited(woken_at - moved_at, received, !received && relay_.sent() != sent);
    moved_at = woken_at;
    if (received || relay_.sent() != sent) awake_.Moved(woken_at);
  }
  awake_spin_.reset();
  {
    base::MutexLock lock(mutex_);
    over_ = true;
  }
  changed_.NotifyAll();
  relay_.outgoing_memory().PokeConsumer();
  if (sleeper.joinable()) sleeper.join();
  return *outcome_;
}

void StreamPump::StayAwake(const std::atomic<uint64_t>* allowed, std::atomic<uint64_t>* spent,
                           Warmth warmth, std::function<bool()> has_spare) {
  warmth_ = warmth;
  awake_.Follow(allowed, spent);
  has_spare_ = std::move(has_spare);
}

bool StreamPump::StaysAwake(Clock::time_point now) {
  if (!awake_.Stays(now)) return false;
  if (!awake_spin_) {
    awake_spin_.emplace(awake_, has_spare_);
    warmth_answered_ = true;
    warmed_at_ = now;
  }
  return awake_spin_->Stays(now);
}

void StreamPump::KeepWarm(Clock::time_point now) {
  const bool asks =
      warmth_ == Warmth::kAsks && awake_spin_ && warmth_answered_ && now - warmed_at_ >= kWarmEvery;
  if (writing_ || (!asks && !warmth_due_)) return;
  warmth_due_ = warmth_answered_ = false;
  warmed_at_ = now;
  warmth_written_ = true;
  Write(relay_.Acknowledgement(), {}, nullptr);
}

// Nothing that the session did: it does not make the threads stay awake for longer.
bool StreamPump::OnlyKeepsWarm(Event event) {
  if (event == Event::kWritten) return std::exchange(warmth_written_, false);
  if (event != Event::kRead || !came_empty_ || !awake_.Stays(Clock::now())) return false;
  (warmth_ == Warmth::kAsks ? warmth_answered_ : warmth_due_) = true;
  return true;
}

void StreamPump::Moved(Clock::time_point when) {
  awake_spin_.reset();
  awake_.Moved(when);
}

// A wait is over: something was received, or sent, or first received and then sent.
void StreamPump::Waited(std::chrono::nanoseconds took, bool received, bool sent) {
  waits_[awaited_].Waited(took);
  if (!tells_waits_apart_) return;
  if (received) awaited_ = kThisEnd;
  if (sent) awaited_ = kFarEnd;
}

void StreamPump::Stop(Closed closed) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_.load()) return;
    wanted_close_ = std::move(closed);
    stopping_.store(true);
  }
  stream_.Wake();
}

void StreamPump::ChangeTerms(const Terms& terms) {
  {
    base::MutexLock lock(terms_mutex_);
    terms_ = terms;
    has_terms_.store(true);
  }
  stream_.Wake();
}

void StreamPump::Abandon() {
  abandoned_.store(true);
  stream_.Wake();
}

bool StreamPump::SleeperMayWork() const { return armed_ && !writing_ && relay_.FarEndHasRoom(); }

void StreamPump::Sleeper() {
  // A consumer position of its own: it only waits.
  wire::RingConsumer watch(relay_.outgoing_shared());
  base::MutexLock lock(mutex_);
  while (true) {
    auto deadline = Clock::now() + kEndLook;
    while (!over_ && !SleeperMayWork() && changed_.WaitUntil(lock, deadline)) {
    }
    if (over_) return;
    bool may_work = SleeperMayWork();
    bool data = false;
    if (may_work) {
      uint64_t position = relay_.sent();
      lock.Unlock();
      data = watch.WaitBeyond(position, {}, wire::Deadline::max());
      lock.Lock();
      if (over_) return;
      // Bytes, or a requested acknowledgement. The answer to bytes finds Run's thread awake.
      if (armed_ && Send() && data && wakes_early_) stream_.Wake();
    }
    if (!data && watch.memory().closed()) {
      // Run's thread ends the session; there is nothing more to wait for here.
      stream_.Wake();
      while (!over_) changed_.Wait(lock);
      return;
    }
  }
}

bool StreamPump::MayRest() {
  if (rested_ || !relay_.WorthResting()) return false;
  heap_user_.Begin();
  return true;
}

// Not while a write is under way: if that fails, the read returns the far end's last frame.
bool StreamPump::AnswerGoesFirst(Clock::time_point now) const {
  return spinning_ == Spinning::kYes && !writing_ && answers_.Expects(now);
}

void StreamPump::ReadOn() {
  if (!read_due_) return;
  read_due_ = false;
  stream_.StartRead();
}

StreamPump::Event StreamPump::Sleep() {
  wire::Deadline deadline = std::min(stop_deadline_, wire::Deadline::max());
  if (relay_.AckMayBecomeDue() || polls_ring_)
    deadline = std::min(deadline, Clock::now() + kAckLook);
  bool may_rest = MayRest();
  if (may_rest) deadline = std::min(deadline, message_at_ + kRestAfter);
  bool useful = false;
  {
    base::MutexLock lock(mutex_);
    armed_ = true;
    useful = SleeperMayWork();
  }
  if (useful) changed_.NotifyOne();
  Event event = stream_.Wait(deadline);
  {
    base::MutexLock lock(mutex_);
    armed_ = false;
  }
  HandleEvent(event);
  if (may_rest && !rested_ && Clock::now() - message_at_ >= kRestAfter) Rest();
  return event;
}

void StreamPump::Rest() {
  relay_.Rest();
  heap_user_.End();
  // Memory with unread bytes is returned at a later idle time.
  rested_ = !relay_.WorthResting();
  if (!rested_) message_at_ = Clock::now();
}

void StreamPump::HandleEvent(Event event) {
  if (event == Event::kRead || event == Event::kWritten) {
    message_at_ = Clock::now();
    rested_ = false;
  }
  switch (event) {
    case Event::kRead:
      HandleFrame();
      break;
    case Event::kWritten:
      writing_ = false;
      if (close_sent_) outcome_ = Outcome::kStopped;
      break;
    case Event::kBroken:
      outcome_ = close_sent_ ? Outcome::kStopped : Outcome::kBroken;
      break;
    case Event::kWoken:
    case Event::kNone:
      break;
  }
}

void StreamPump::HandleFrame() {
  came_empty_ = false;
  const ReceivedFrame& frame = stream_.received();
  counters_.messages_in.fetch_add(1, std::memory_order_relaxed);
  bool packed = frame.header.flags == kFramePacked;
  if (frame.header.flags != 0 && !packed) return HandleControl(frame);
  ReceivedFrame plain;
  if (packed && unpacker_.Unpack(frame, relay_.takes_packed(), &plain) != WireResult::kOk) {
    return Violation("a packed message arrived that cannot be unpacked");
  }
  const ReceivedFrame& taken = packed ? plain : frame;
  Count(taken.bytes, frame.bytes, &counters_.bytes_in);
  if (relay_.Take(taken) != WireResult::kOk) {
    return Violation("a message out of order, of an older connection or too large arrived");
  }
  came_empty_ = taken.bytes == 0;
  if (!came_empty_ || !awake_.Stays(message_at_)) answers_.Received(message_at_);
  read_due_ = true;
}

void StreamPump::HandleControl(const ReceivedFrame& frame) {
  std::string body = ControlBody(frame);
  auto bytes = std::as_bytes(std::span(body));
  if (frame.header.flags == kFrameClosed) {
    if (DecodeClosed(bytes, &closed_) != WireResult::kOk) {
      return Violation("a malformed last message arrived");
    }
    outcome_ = Outcome::kPeerClosed;
  } else if (frame.header.flags == kFramePing) {
    pong_ = std::move(body);
    read_due_ = true;
  } else if (frame.header.flags == kFrameAttached && on_attached_ && on_attached_(bytes)) {
    read_due_ = true;
  } else if (Terms terms; frame.header.flags == kFrameTerms && on_terms_ &&
                          DecodeTerms(bytes, &terms) == WireResult::kOk) {
    on_terms_(terms);
    read_due_ = true;
  } else {
    Violation("a message of an unknown kind arrived");
  }
}

void StreamPump::Violation(std::string sentence) {
  closed_ = {static_cast<uint32_t>(kUnknown), std::move(sentence)};
  outcome_ = Outcome::kViolation;
}

bool StreamPump::Send() {
  if (writing_ || close_sent_) return false;
  if (pong_) {
    WriteControl(kFramePong, std::move(*pong_));
    pong_.reset();
    return true;
  }
  if (has_terms_.load(std::memory_order_relaxed) && SendTerms()) return true;
  if (relay_.sends_packed() != packer_.allowed()) packer_.Allow(relay_.sends_packed());
  if (packer_.allowed() != 0) packer_.Delivered(relay_.delivered(), relay_.sent(), Clock::now());
  RelayEnd::Batch batch;
  if (!relay_.Next(&batch)) return false;
  WriteBatch(batch);
  return true;
}

bool StreamPump::SendTerms() {
  std::optional<Terms> terms;
  {
    base::MutexLock lock(terms_mutex_);
    std::swap(terms, terms_);
    has_terms_.store(false);
  }
  if (!terms) return false;
  // Later frames may use this codec.
  relay_.ChangePacking(terms->packing);
  WriteControl(kFrameTerms, EncodeTerms(*terms));
  return true;
}

void StreamPump::WriteBatch(const RelayEnd::Batch& batch) {
  auto packed = packer_.Pack(batch.bytes);
  if (packer_.allowed() != 0) packer_.Sent(relay_.sent(), batch.bytes.size(), Clock::now());
  Count(batch.bytes.size(), packed == nullptr ? batch.bytes.size() : packed->size(),
        &counters_.bytes_out);
  if (packed == nullptr) return Write(batch.header, batch.bytes, relay_.outgoing_shared());
  FrameHeader header = batch.header;
  header.flags = kFramePacked;
  Write(header, *packed, packed);
}

void StreamPump::Count(size_t plain, size_t moved, std::atomic<uint64_t>* bytes) {
  bytes->fetch_add(plain, std::memory_order_relaxed);
  if (moved < plain) counters_.saved.fetch_add(plain - moved, std::memory_order_relaxed);
}

void StreamPump::Write(const FrameHeader& header, std::span<const std::byte> bytes,
                       std::shared_ptr<void> keep) {
  writing_ = true;
  counters_.messages_out.fetch_add(1, std::memory_order_relaxed);
  stream_.StartWrite(header, bytes, std::move(keep));
}

void StreamPump::WriteControl(uint32_t flags, std::string body) {
  auto kept = std::make_shared<std::string>(std::move(body));
  Write(relay_.ControlHeader(flags), std::as_bytes(std::span(*kept)), kept);
}

void StreamPump::CheckForEnd() {
  if (outcome_) return;
  if (abandoned_.load(std::memory_order_relaxed)) {
    outcome_ = Outcome::kBroken;
    return;
  }
  wire::RingMemory& ring = relay_.outgoing_memory();
  bool ring_closed = ring.closed();
  if (!ring_closed && !stopping_.load()) return;
  if (stop_deadline_ == wire::Deadline::max()) {
    stop_deadline_ = Clock::now() + kStopTime;
    base::MutexLock lock(mutex_);
    if (stopping_.load()) {
      closed_ = wanted_close_;
    } else {
      closed_.code = ring.close_code();
    }
  }
  if (Clock::now() >= stop_deadline_) {
    outcome_ = Outcome::kStopped;
  } else if (!writing_ && !close_sent_ && relay_.OutgoingIsEmpty()) {
    close_sent_ = true;
    WriteControl(kFrameClosed, EncodeClosed(closed_));
  }
}

}  // namespace longwire::transport
