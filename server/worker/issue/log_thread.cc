#include "server/worker/issue/log_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "longwire/calls.h"
#include "server/worker/completion/completion.h"
#include "server/worker/completion/gates.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/swapping.h"
#include "server/worker/states/kept_states.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/support/failures.h"
#include "server/worker/support/helpers.h"
#include "server/worker/support/host_memory.h"
#include "server/worker/support/journal.h"
#include "server/worker/tracing/spans.h"
#include "server/worker/transfer/transfers.h"
#include "wire/guards.h"
#include "wire/record.h"
#include "wire/rings/pieces.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

using Clock = std::chrono::steady_clock;

// Calls sorted before the next issuing: enough to amortise a pass, few enough that the first of a
// burst does not wait for the last.
constexpr int kRecordsPerPass = 64;
constexpr uint64_t kPassesPerMarking = 16;
constexpr size_t kFetchedAhead = 8192;  // bytes, about as many as a pass of launches has
// Steps in which what waits is counted.
constexpr uint64_t kCountedBytes = uint64_t{4} << 20;
// A missed wake-up would cost at most this.
constexpr std::chrono::milliseconds kRecheck{10};
// A thread that stays awake looks this often whether it still may.
constexpr std::chrono::microseconds kAwakeLook{50};
const bool kWakesEarly = !wire::IsSwitchedOff("early-wakes");

}  // namespace

void LogThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

void LogThread::Join() {
  if (thread_.joinable()) thread_.join();
}

void LogThread::Run() {
  uses_.current_context.EnterThread();
  uint64_t passes = 0;
  while (!uses_.failures.over()) {
    const bool held = held_;
    at_border_ = held;
    bool read = !held && ReadSome();
    bool issued = uses_.issuer.Pass();
    issued |= uses_.deferred.Pass();
    issued |= uses_.swapping.Step(read || issued);
    // Markers when the burst is over, or now and then in one that does not end.
    if (!read || ++passes % kPassesPerMarking == 0) uses_.issuer.MarkTouched();
    if (read || issued) {
      moved_ = true;
      continue;
    }
    if (up_.memory().closed()) {
      uses_.failures.Leave();
      return;
    }
    if (held) {
      WaitHeld();
    } else {
      Wait();
    }
  }
}

void LogThread::Hold(bool hold) {
  quiet_ = false;
  at_border_ = false;  // until the thread has seen it
  held_ = hold;
  up_.memory().PokeConsumer();
}

// The ring is left alone: its memory may be copied.
void LogThread::WaitHeld() {
  quiet_ = uses_.memory.away() == 0 && uses_.issuer.IsIdle() && !uses_.deferred.anything_waits();
  if (!held_) quiet_ = false;
  uses_.completion.wake_log_thread = true;
  up_.WaitBeyond(UINT64_MAX, {}, Clock::now() + kRecheck);
  uses_.completion.wake_log_thread = false;
}

void LogThread::Wait() {
  const bool full = IsFull();
  uses_.waiting.Await(full);
  bool waits = full || uses_.issuer.anything_waits() || uses_.deferred.anything_waits() ||
               uses_.swapping.is_asked() || uses_.states.any_late();
  if (waits) {
    // Said first and then looked once more, so that nothing finishes unseen in between.
    uses_.completion.wake_log_thread = true;
    bool issued = uses_.issuer.Pass();
    issued |= uses_.deferred.Pass();
    uses_.issuer.MarkTouched();
    if (issued) return;
  }
  auto deadline = waits ? Clock::now() + kRecheck : up_.RestDeadline();
  if (uses_.down.OwesCredit()) deadline = std::min(deadline, Clock::now() + kRecheck);
  auto begun = Clock::now();
  if (std::exchange(moved_, false)) uses_.gates.awake().Moved(begun);
  uses_.swapping.SetResting(true);
  const bool has_data = WaitBeyond(IsFull() ? UINT64_MAX : seen_, deadline);
  const auto waited = Clock::now() - begun;
  // Nothing finishes with which it could leave.
  if (!has_data && waited >= kRecheck) uses_.down.PayCredit();
  // After a rest the completion thread sleeps, too. It wakes while the first record is read.
  if (has_data && kWakesEarly && waited >= spin_.Spin()) uses_.completion.ExpectWork();
  if (full) uses_.waiting.Await(false);
  if (up_.ToldToRest() && uses_.down.Rest()) up_.Rested();
  uses_.swapping.SetResting(false);
  spin_.Waited(waited);
  uses_.completion.wake_log_thread = false;
}

bool LogThread::WaitBeyond(uint64_t position, wire::Deadline deadline) {
  wire::Awake& awake = uses_.gates.awake();
  if (!awake.Stays(Clock::now())) return up_.WaitBeyond(position, spin_.Spin(), deadline);
  if (up_.SpinBeyond(position, Clock::now() + spin_.Spin())) return up_.HasBeyond(position);
  wire::AwakeWait wait(awake);
  for (auto now = Clock::now(); now < deadline && wait.Stays(now); now = Clock::now()) {
    if (up_.SpinBeyond(position, now + kAwakeLook)) return up_.HasBeyond(position);
  }
  return up_.WaitBeyond(position, {}, deadline);
}

bool LogThread::IsIdle() {
  bool read = uses_.memory.away() != 0 || up_.Available().empty();
  return read && uses_.issuer.IsIdle() && !uses_.deferred.anything_waits();
}

// Calls that wait are copied out of the ring; past the limit the log is not read until some have
// run.
bool LogThread::IsFull() const { return waiting_bytes() > uses_.transfers.limits().calls; }

void LogThread::CountWaiting() {
  const uint64_t now = waiting_bytes();
  if (std::max(now, counted_) - std::min(now, counted_) < kCountedBytes) return;
  counted_ = now;
  uses_.host_memory.Set(HostUse::kCalls, now);
}

bool LogThread::ReadSome() {
  CountWaiting();
  auto log = up_.Available();
  // Bytes that arrive after this poll must end the wait that may follow.
  seen_ = up_.cursor() + log.size();
  int records = 0;
  while (records < kRecordsPerPass && !IsFull() && !uses_.failures.over()) {
    wire::RecordHeader header;
    size_t bytes = 0;
    if (wire::PeekRecord(log, &header, &bytes) != wire::WireResult::kOk) {
      uses_.failures.Fatal("a record of the log has an impossible size");
      return false;
    }
    if (bytes == 0 || uses_.swapping.MustWait(static_cast<CallId>(header.call))) break;
    // What stands before it is issued first: a copy that has begun takes its bytes into pinned
    // memory at once. And what has come of a copy goes to the device before more is read.
    const bool bulk = bytes >= wire::kBulkRecordBytes && wire::MovesPieceByPiece();
    if (bulk && records != 0) break;
    if (uses_.deferred.MustWait(header) || AwaitsStates(header)) break;
    if (auto launched = IssueAtOnce(header, log); launched.records != 0) {
      log = log.subspan(launched.bytes);
      up_.Advance(launched.bytes);
      records += launched.records;
      continue;
    }
    Sort(header, up_.cursor(), log.subspan(sizeof(header), bytes - sizeof(header)));
    log = log.subspan(wire::AlignRecord(bytes));
    up_.Advance(wire::AlignRecord(bytes));
    ++records;
    if (bulk) break;
  }
  up_.Release(up_.cursor());
  FetchAhead(log);
  return records != 0;
}

bool LogThread::AwaitsStates(const wire::RecordHeader& header) {
  if (!uses_.states.any_late() || !IsGated(static_cast<CallId>(header.call))) return false;
  const std::shared_ptr<Stream>& its = streams_.Find(header.stream);
  if (its != nullptr && its->of_mirrors) return false;
  for (auto& [id, kept] : uses_.states.all()) {
    if (!kept.late) continue;
    const std::shared_ptr<Stream> stream = uses_.streams.Find(id);
    if (stream == nullptr || stream->context->failed != 0) {
      bool late = false;
      uses_.states.Take(kept, &late);
      uses_.states.Arrived(late);
    } else if (!std::exchange(kept.asked, true)) {
      // A look at nothing, which has it stored.
      wire::Writer writer;
      calls::lwMirrorLook{}.Encode(writer);
      QueuedCall look;
      look.position = up_.cursor();
      look.call = CallId::lwMirrorLook;
      look.context = stream->context->id;
      look.stream = id;
      look.arguments.assign(writer.span().begin(), writer.span().end());
      uses_.issuer.Enqueue(stream, look);
    }
  }
  return uses_.states.any_late();
}

Issuer::FromLog LogThread::IssueAtOnce(const wire::RecordHeader& header,
                                       std::span<const std::byte> log) {
  bool plain = static_cast<CallId>(header.call) == CallId::lwLaunch && header.flags == 0;
  if (!plain) return {};
  const std::shared_ptr<Stream>& stream = streams_.Find(header.stream);
  return stream == nullptr ? Issuer::FromLog{}
                           : uses_.issuer.IssueFromLog(stream, log, up_.cursor());
}

void LogThread::Sort(const wire::RecordHeader& header, uint64_t position,
                     std::span<const std::byte> bytes) {
  if (static_cast<CallId>(header.call) == CallId::lwCopyData && header.stream == 0) {
    return TakeBytes(bytes);
  }
  QueuedCall& call = sorted_;
  call.position = position;
  call.call = static_cast<CallId>(header.call);
  call.flags = header.flags;
  call.thread = header.thread;
  call.context = header.context;
  call.stream = header.stream;
  call.progress = call.step = 0;
  // Copied out of the shared memory once; everything after reads the copy.
  call.arguments.assign(bytes.begin(), bytes.end());
  CallKindValue kind = CallKind(call.call);
  if (kind != CallKindValue::kAtOnce && kind != CallKindValue::kAfterReply) {
    uses_.failures.Fatal("the log names call " + std::to_string(header.call) +
                         ", which this worker does not know");
    return;
  }
  uses_.gates.CountCall(call.call);
  uses_.journal.Read(call);
  // Our own calls belong into a stream or do not; their handlers rely on it.
  if (CallStreamOrdered(call.call) != (header.stream != 0) && CallIsPrivate(call.call)) {
    uses_.executor.Refuse(call, CUDA_ERROR_INVALID_HANDLE);
    return;
  }
  if (header.stream == 0) {
    SortOutsideStreams(std::move(call));
    return;
  }
  const std::shared_ptr<Stream>& stream = streams_.Find(header.stream);
  if (stream == nullptr && !wire::kPlantedBug) {
    AfterDropped(uses_.bookkeeping, call);
    uses_.executor.Refuse(call, CUDA_ERROR_INVALID_HANDLE);
    // Its creation may have failed here, which nobody waited for: whoever waits for it goes on.
    uses_.down.Progress(header.stream, position);
    return;
  }
  if (AfterSorted(uses_.bookkeeping, call) != wire::WireResult::kOk) {
    uses_.failures.Fatal(std::string("the arguments of ") + CallName(call.call) +
                         " cannot be decoded");
    return;
  }
  uses_.issuer.Enqueue(stream, call);
}

// What stands in the log next lies in the cache of the core that wrote it. It comes here while the
// driver has its turn.
void LogThread::FetchAhead(std::span<const std::byte> log) {
  constexpr size_t kLine = 64;
  log = log.first(std::min(log.size(), kFetchedAhead));
  for (size_t at = 0; at < log.size(); at += kLine) __builtin_prefetch(&log[at]);
}

// Bytes go from the ring to their place without another copy: each field is read once.
void LogThread::TakeBytes(std::span<const std::byte> bytes) {
  uses_.gates.CountCall(CallId::lwCopyData);
  if (!uses_.executor.TakeBytes(bytes)) {
    uses_.failures.Fatal("the arguments of lwCopyData cannot be decoded");
  }
}

void LogThread::SortOutsideStreams(QueuedCall call) {
  if (uses_.spans.on()) uses_.spans.Read(call);
  if (uses_.deferred.Take(call)) return;
  switch (CallRunsOn(call.call)) {
    case CallThread::kLogThread:
      uses_.executor.Execute(call, nullptr);
      return;
    case CallThread::kLinkerThread:
      return RunOnHelper(Helpers::kLinkerThread, std::move(call));
    case CallThread::kMemoryThread:
      uses_.deferred.Pass();  // destroys that may run are on that helper now, before this
      return RunOnHelper(Helpers::kMemoryThread, std::move(call));
    case CallThread::kClientThread: {
      if (call.call == CallId::lwMemoryInfo) return TellMemory(std::move(call));
      uint32_t thread = call.thread;
      return RunOnHelper(thread, std::move(call));
    }
  }
}

// At once if the keeper has written down what is free, else on the thread's helper. What the
// program has given back before and is on its way is counted: the call goes behind it.
void LogThread::TellMemory(QueuedCall call) {
  uses_.deferred.Pass();
  const uint32_t thread = call.thread;
  const bool returns = uses_.helpers.IsBusy(Helpers::kMemoryThread);
  if (!returns && uses_.executor.Execute(call, nullptr) != kNotYet) return;
  call.step = 1;
  if (!returns) return RunOnHelper(thread, std::move(call));
  uses_.helpers.Post(Helpers::kMemoryThread,
                     [this, held = std::make_shared<WaitingCall>(uses_.waiting, std::move(call))] {
                       uses_.helpers.Post((*held)->thread, [executor = uses_.executor, held] {
                         executor.Execute(**held, nullptr);
                       });
                     });
}

void LogThread::RunOnHelper(uint32_t thread, QueuedCall call) {
  uses_.helpers.Post(thread, [executor = uses_.executor, held = std::make_shared<WaitingCall>(
                                                             uses_.waiting, std::move(call))] {
    executor.Execute(**held, nullptr);
  });
}

}  // namespace longwire::worker
