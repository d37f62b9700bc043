// The pump of a session: reading what comes down, and waiting.
#include <algorithm>
#include <chrono>

#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/graph/graph.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/fault_note.h"
#include "client-shim/session/lanes.h"
#include "client-shim/session/reclaim.h"
#include "client-shim/session/session.h"
#include "client-shim/session/uploads.h"
#include "client-shim/stream/callbacks.h"
#include "wire/guards.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

// After a waiter read for itself the receiver leaves the ring alone this long: the program is
// likely to wait again soon, and taking the ring back from a sleeping receiver costs two wake-ups.
// What comes meanwhile without anybody waiting (host functions, pulls) is only this much late.
constexpr std::chrono::microseconds kReceiverPause{500};
// It looks less and less often, and beyond this pause it sleeps until the waiter is done.
constexpr std::chrono::microseconds kReceiverPauseLimit{10'000};

// A waiter looks this often whether the session is over.
constexpr std::chrono::milliseconds kPumpLook{200};

// Text of the device that no wait has printed yet; what is more is dropped.
constexpr size_t kMaxText = size_t{256} << 20;

// What a record of the kind does wrong if it is refused.
const char* Fault(uint16_t kind) {
  switch (static_cast<wire::DownKind>(kind)) {
    case wire::DownKind::kReply:
      return "answered a call that awaits no answer";
    case wire::DownKind::kProgress:
      return "reported the end of work that was not queued";
    case wire::DownKind::kData:
    case wire::DownKind::kLanding:
      return "sent bytes that were not requested";
    case wire::DownKind::kPull:
      return "asked for bytes that are not on offer";
    case wire::DownKind::kHostFunction:
      return "called a function that was not queued";
    case wire::DownKind::kMirror:
      return "sent changes of memory that were not requested";
    case wire::DownKind::kSlot:
      return "returned memory that it did not have";
    case wire::DownKind::kReclaim:
      return "asked for memory of a device that it does not have";
    default:
      return "sent a message that cannot be read";
  }
}

// While bytes are waited for, the pump looks this often whether any can still come.
constexpr std::chrono::milliseconds kLandingLook{100};

}  // namespace

bool ClientSession::WaitUntil(FunctionRef<bool()> done, wire::Deadline deadline, Counts counts) {
  base::AssertNoRankedLockHeld();
  base::MutexLock lock(state_mutex_);
  bool finished = done();
  if (finished || ended() != CUDA_SUCCESS) return finished;
  if (counts == Counts::kYes) counts_.waits.fetch_add(1, std::memory_order_relaxed);
  ++waiters_;
  ++waits_begun_;
  bool endless = deadline == wire::Deadline::max();
  while (!(finished = done()) && ended() == CUDA_SUCCESS && (endless || Clock::now() < deadline)) {
    if (!pump_taken_) {
      pump_taken_ = true;
      lock.Unlock();
      PumpForAWaiter(deadline);
      lock.Lock();
      pump_taken_ = false;
      continue;
    }
    if (receiver_pumps_) down_.memory().PokeConsumer();
    if (endless) {
      state_changed_.Wait(lock);
    } else {
      state_changed_.WaitUntil(lock, deadline);
    }
  }
  --waiters_;
  if (waiters_ > 0) {
    state_changed_.NotifyAll();  // one of them takes the pump over
  } else if (receiver_sleeps_) {
    receiver_wake_.NotifyOne();
  }
  return finished;
}

// Until something came, or for a while.
void ClientSession::PumpForAWaiter(wire::Deadline deadline) {
  auto begun = Clock::now();
  deadline = std::min(begun + kPumpLook, deadline);
  uint64_t before = down_.cursor();
  auto until = begun;
  for (auto now = begun; now >= until && now < deadline; now = Clock::now()) {
    auto part = spin_.Next(now - begun);
    bool sleeps_on = part.sleep >= deadline - now;
    until = sleeps_on ? deadline : std::min(now + part.spin + part.sleep, deadline);
    Pump(part.spin, until);
    if (down_.cursor() != before) break;
  }
  if (down_.cursor() != before) spin_.Waited(Clock::now() - begun);
}

void ClientSession::ReadWithoutWaiting() {
  base::AssertNoRankedLockHeld();
  if (!state_mutex_.TryLock()) return;
  base::MutexLock lock(state_mutex_, base::AdoptLock());
  if (pump_taken_ || ended() != CUDA_SUCCESS) return;
  pump_taken_ = true;
  lock.Unlock();
  Pump(std::chrono::nanoseconds(0), Clock::now());
  lock.Lock();
  pump_taken_ = false;
  if (waiters_ > 0) state_changed_.NotifyAll();
  if (receiver_sleeps_) receiver_wake_.NotifyOne();
}

void ClientSession::ReceiverLoop() {
  // It waits for bytes without the pump, so that a program that begins to wait has that at once.
  wire::RingConsumer bytes(down_memory_);
  base::MutexLock lock(state_mutex_);
  auto pause = kReceiverPause;
  while (ended() == CUDA_SUCCESS) {
    if (waiters_ > 0 || pump_taken_) {
      uint64_t begun = waits_begun_;
      receiver_sleeps_ = pause > kReceiverPauseLimit;
      if (receiver_sleeps_) {
        receiver_wake_.Wait(lock);
      } else {
        receiver_wake_.WaitUntil(lock, Clock::now() + pause);
      }
      receiver_sleeps_ = false;
      pause = begun == waits_begun_ ? pause * 2 : kReceiverPause;
      if (begun != waits_begun_ || waiters_ > 0 || pump_taken_) continue;
    }
    pause = kReceiverPause;
    // Asked first: what comes after this ends the wait.
    const uint64_t seen = down_.cursor() + down_.Available().size();
    if (!CanRead() && !awaits_landing_) {
      const wire::Deadline rest = down_.RestDeadline();
      lock.Unlock();
      bytes.WaitBeyond(seen, {}, rest);
      lock.Lock();
      if (waiters_ > 0 || pump_taken_) continue;
    }
    pump_taken_ = true;
    receiver_pumps_ = true;
    lock.Unlock();
    const auto now = Clock::now();
    Pump(std::chrono::nanoseconds(0), awaits_landing_ ? now + kLandingLook : now);
    if (down_.ToldToRest()) Rest();
    lock.Lock();
    receiver_pumps_ = false;
    pump_taken_ = false;
    if (waiters_ > 0) state_changed_.NotifyAll();
  }
}

void ClientSession::Rest() {
  if (!log_mutex_.TryLock()) return;
  base::MutexLock lock(log_mutex_, base::AdoptLock());
  up_.GiveBack();
  if (!up_.WorthGivingBack()) down_.Rested();
}

// The ring has only a code; who closed it may have said why on the socket before.
void ClientSession::EndAsTheServerSays() {
  uint32_t code = down_.memory().close_code();
  std::string words = watch_.LastWords();
  std::string sentence = "the session was ended by the server (code " + std::to_string(code) + ")";
  if (!words.empty()) {
    sentence = "the session has ended: " + words;
  } else if (code == 0) {
    sentence = "the connection to the server is lost";
  }
  End(code == 0 ? CUDA_ERROR_LAUNCH_FAILED : static_cast<CUresult>(code), sentence);
}

// A whole record is there, or something that is none.
bool ClientSession::CanRead() {
  wire::DownHeader header;
  size_t bytes = 0;
  const auto result = wire::PeekRecord(down_.Available(), &header, &bytes);
  return result != wire::WireResult::kOk || bytes != 0;
}

void ClientSession::Pump(std::chrono::nanoseconds spin, wire::Deadline deadline) {
  std::span<const std::byte> log = down_.Available();
  // With half a record there, more is needed than what is there.
  if (!CanRead()) down_.WaitBeyond(down_.cursor() + log.size(), spin, deadline);
  wire::DownHeader header;
  size_t bytes = 0;
  // Asked first: what was written before the ring was closed is still read.
  bool closed = down_.memory().closed();
  log = down_.Available();
  awaits_landing_ = false;
  while (true) {
    if (wire::PeekRecord(log, &header, &bytes) != wire::WireResult::kOk) {
      Distrust("sent something that is not a record");
      return;
    }
    if (bytes == 0) break;
    if (!HasLanded(header, log.subspan(sizeof(header), bytes - sizeof(header)), deadline)) {
      closed = down_.memory().closed();
      awaits_landing_ = true;
      break;
    }
    if (!HandleRecord(header, log.subspan(sizeof(header), bytes - sizeof(header)))) {
      Distrust(Fault(header.kind));
      return;
    }
    size_t step = wire::AlignRecord(bytes);
    down_.Advance(step);
    down_.Release(down_.cursor());
    log = log.subspan(step);
  }
  if (down_.released() - poked_at_ >= down_.memory().bytes() / 8) {
    poked_at_ = down_.released();
    up_memory_.PokeConsumer();  // a relay sends the acknowledgement on
  }
  if (closed && ended() == CUDA_SUCCESS) EndAsTheServerSays();
}

// What stands behind such a record says that a copy has finished: it waits for the copy's bytes,
// which the lanes' threads bring.
bool ClientSession::HasLanded(const wire::DownHeader& header, std::span<const std::byte> payload,
                              wire::Deadline deadline) {
  if (static_cast<wire::DownKind>(header.kind) != wire::DownKind::kLanding) return true;
  wire::Reader reader(payload);
  uint64_t transfer = 0, bytes = 0;
  constexpr auto kOk = wire::WireResult::kOk;
  if (reader.U64(&transfer) != kOk || reader.U64(&bytes) != kOk) return true;
  return transfers_.WaitLanded(transfer, bytes, std::min(deadline, Clock::now() + kLandingLook));
}

bool ClientSession::HandleRecord(const wire::DownHeader& header,
                                 std::span<const std::byte> payload) {
  wire::Reader reader(payload);
  constexpr auto kOk = wire::WireResult::kOk;
  uint64_t number = 0;
  switch (static_cast<wire::DownKind>(header.kind)) {
    case wire::DownKind::kReply:
      return OnReply(header, payload);
    case wire::DownKind::kProgress:
      return OnProgress(header, reader);
    case wire::DownKind::kError:
      return OnError(header, reader);
    case wire::DownKind::kData: {
      uint64_t offset = 0;
      if (reader.U64(&number) != kOk || reader.U64(&offset) != kOk) return false;
      std::span<const std::byte> data = payload.subspan(reader.offset());
      counts_.downloaded.fetch_add(data.size(), std::memory_order_relaxed);
      return HasGiven(number) && transfers_.Arrive(number, offset, data);
    }
    case wire::DownKind::kPull:
      return reader.U64(&number) == kOk && HasGiven(number) && ServePull(*this, number);
    case wire::DownKind::kHostFunction:
      return reader.U64(&number) == kOk && RunHostFunction(*this, number);
    case wire::DownKind::kCredit:
      if (reader.U64(&number) != kOk) return false;
      ReturnCredit(*this, number);
      return true;
    case wire::DownKind::kSlot:
      return reader.U64(&number) == kOk && lanes_->GiveSlot(number);
    case wire::DownKind::kRelease: {
      uint64_t ticket = 0;
      if (reader.U64(&number) != kOk || reader.U64(&ticket) != kOk) return false;
      if (!HasGiven(number)) return false;
      ForgetGraphPart(*this, number, ticket);
      return true;
    }
    case wire::DownKind::kMirror: {
      if (reader.U64(&number) != kOk || !HasGiven(number)) return false;
      std::span<const std::byte> delta = payload.subspan(reader.offset());
      counts_.downloaded.fetch_add(delta.size(), std::memory_order_relaxed);
      return OnMirrorDelta(number, delta);
    }
    case wire::DownKind::kReclaim: {
      wire::ReclaimRequest request;
      return reader.Raw(&request, sizeof(request)) == kOk && OnReclaim(*this, request);
    }
    case wire::DownKind::kLanding:
      return OnLanding(reader);
    case wire::DownKind::kText:
      return OnText(header, payload);
  }
  return false;
}

bool ClientSession::OnLanding(wire::Reader& reader) {
  uint64_t transfer = 0, bytes = 0;
  constexpr auto kOk = wire::WireResult::kOk;
  if (reader.U64(&transfer) != kOk || reader.U64(&bytes) != kOk) return false;
  return HasGiven(transfer) && transfers_.CanLand(transfer, bytes);
}

bool ClientSession::OnText(const wire::DownHeader& header, std::span<const std::byte> payload) {
  base::MutexLock state(state_mutex_);
  std::string& text = (header.flags & wire::kStandardError) != 0 ? error_text_ : text_;
  size_t room = kMaxText - std::min(text.size(), kMaxText);
  text.append(reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), room));
  return true;
}

bool ClientSession::OnReply(const wire::DownHeader& header, std::span<const std::byte> payload) {
  PendingReply* reply = nullptr;
  {
    base::MutexLock state(state_mutex_);
    auto found = replies_.find(header.position);
    static const bool guard_off = wire::GuardIsOff("answers");
    if (found == replies_.end()) return guard_off;  // nobody asked for it
    reply = found->second;
    replies_.erase(found);
    if (!reply->then) {
      if (reply->payload != nullptr) reply->payload->assign(payload.begin(), payload.end());
      reply->code = static_cast<CUresult>(header.code);
      reply->done = true;  // the waiter's stack may be gone from here on
      state_changed_.NotifyAll();
      return true;
    }
  }
  reply->then(static_cast<CUresult>(header.code), payload);
  delete reply;
  return true;
}

bool ClientSession::OnProgress(const wire::DownHeader& header, wire::Reader& reader) {
  uint64_t id = 0;
  if (reader.U64(&id) != wire::WireResult::kOk || !HasGiven(id)) return false;
  if (header.position > newest_.load(std::memory_order_acquire)) return false;
  EndUpTo(id, header.position);
  Stream* gone = nullptr;
  {
    base::MutexLock state(state_mutex_);
    auto found = streams_.find(id);
    if (found == streams_.end()) return true;
    Stream* stream = found->second;
    if (header.position > stream->finished.load(std::memory_order_relaxed)) {
      stream->finished.store(header.position, std::memory_order_release);
    }
    if (stream->destroyed.load() && stream->Idle()) {
      streams_.erase(found);
      gone = stream;
    }
    state_changed_.NotifyAll();
  }
  EndUpTo(id, header.position);  // what was added meanwhile (EndsWith)
  if (gone != nullptr) Release(gone);
  return true;
}

void ClientSession::NoteFinished(Stream* stream, uint64_t position) {
  {
    base::MutexLock state(state_mutex_);
    if (stream->context->sticky.load() != 0 || ended() != CUDA_SUCCESS) return;
    if (position > stream->finished.load(std::memory_order_relaxed)) {
      stream->finished.store(position, std::memory_order_release);
    }
    state_changed_.NotifyAll();
  }
  down_memory_->PokeConsumer();  // for a thread that waits for it and reads meanwhile
}

void ClientSession::EndsWith(Stream* stream, uint64_t position, const Ending& ending) {
  if (position == kNoPosition) return EndNow(ending);
  ends_.Add(stream->id, position, ending);
  if (stream->finished.load() >= position) EndUpTo(stream->id, position);
}

// Before the progress is seen: the program may then free what the server could still use.
void ClientSession::EndUpTo(uint64_t stream, uint64_t position) {
  for (const Ending& ending : ends_.Take(stream, position)) EndNow(ending);
}

void ClientSession::EndNow(const Ending& ending) {
  switch (ending.kind) {
    case Ending::Kind::kDownload:
      return transfers_.DropDownload(ending.id);
    case Ending::Kind::kUpload:
      return transfers_.EndUpload(ending.id);
    case Ending::Kind::kHostFunction:
      return DropHostFunction(ending.id);
    case Ending::Kind::kGraphWrites:
      return transfers_.EndGraphWrites();
    case Ending::Kind::kGraphReads:
      return transfers_.EndGraphReads();
  }
}

bool ClientSession::OnError(const wire::DownHeader& header, wire::Reader& reader) {
  uint32_t number = 0;
  if (reader.U32(&number) != wire::WireResult::kOk) return false;
  std::span<const std::byte> rest;
  if (reader.View(reader.remaining(), &rest) != wire::WireResult::kOk) return false;
  std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  if ((header.flags & wire::kSessionOver) != 0) {
    NoteFault(header.code, text);
    End(static_cast<CUresult>(header.code == 0 ? CUDA_ERROR_LAUNCH_FAILED : header.code), text);
    return true;
  }
  if (ProcessOptions().log) {
    Say("call at %llu failed with %d: %s", static_cast<unsigned long long>(header.position),
        header.code, text.c_str());
  }
  if (header.code != 0) LogErrorQuietly(text);
  if (header.code == 0) SetLackReason(text);
  Context* context = ContextByNumber(number);
  if (context == nullptr || header.code == 0) return true;
  bool sticky = (header.flags & wire::kSticky) != 0;
  if (sticky) NoteFault(header.code, text);
  if (sticky) FlushErrorText();  // a failed assert's text, before the error becomes visible
  {
    base::MutexLock state(state_mutex_);
    int none = 0;
    (sticky ? context->sticky : context->once).compare_exchange_strong(none, header.code);
    state_changed_.NotifyAll();
  }
  if (sticky) FailHostFunctions(number);
  return true;
}

}  // namespace longwire::shim
