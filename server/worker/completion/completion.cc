#include "server/worker/completion/completion.h"

#include <sched.h>

#include <algorithm>

#include "server/worker/completion/gates.h"
#include "server/worker/completion/printing.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/support/failures.h"
#include "server/worker/support/text_pipes.h"

namespace longwire::worker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{200};  // the latest that a finished stream is noticed
constexpr int kLockTries = 50;
constexpr milliseconds kFaultCheck{5};  // without progress

bool TryForLong(base::Mutex& mutex)
    LONGWIRE_TRY_ACQUIRE(true, mutex) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS {
  for (int i = 0; i < kLockTries; ++i) {
    if (mutex.TryLock()) return true;
    sched_yield();
  }
  return mutex.TryLock();
}

}  // namespace

void Completion::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Completion::Stop() {
  uses_.timelines.Stop();
  if (thread_.joinable()) thread_.join();
}

// A program that waited goes on at once: its next work is looked for before sleeping.
bool Completion::LookForWork() {
  auto begun = Clock::now();
  {
    wire::AwakeWait wait(uses_.gates.awake());
    while (!uses_.failures.over() && !uses_.timelines.anything_watched()) {
      auto now = Clock::now();
      if (now - begun >= idle_spin_.Spin() && !wait.Stays(now)) break;
      sched_yield();
    }
  }
  bool works = uses_.timelines.WaitForWork();
  idle_spin_.Waited(Clock::now() - begun);
  return works;
}

void Completion::Run() {
  uses_.current_context.EnterThread();
  while (LookForWork()) {
    if (uses_.failures.over()) return;
    while (!uses_.failures.over() && WatchForStep()) {
    }
  }
}

bool Completion::WatchForStep() {
  const auto begun = Clock::now();
  auto next_check = begun + kFaultCheck;
  microseconds sleep = kShortestSleep;
  wire::AwakeWait wait(uses_.gates.awake());
  while (!uses_.failures.over()) {
    if (Step()) {
      auto now = Clock::now();
      watch_spin_.Waited(now - begun);
      uses_.gates.awake().Moved(now);
      return true;
    }
    if (!uses_.timelines.anything_watched()) return false;
    auto now = Clock::now();
    auto part = watch_spin_.Next(now - begun);
    if (part.spin.count() > 0) {
      sched_yield();
      continue;
    }
    if (now >= next_check) {
      LookForFaults();
      next_check = now + kFaultCheck;
    }
    if (wait.Stays(now)) {
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(sleep, part.sleep));
    sleep = std::min(sleep + sleep / 4, kLongestSleep);
  }
  return false;
}

bool Completion::Step() {
  acting_ = true;  // before anything is taken out of what is watched
  uses_.timelines.Collect(&reached_);
  if (reached_.empty()) {
    acting_ = false;
    return false;
  }
  {
    DownWriter::Together together(uses_.down);
    Finish();
    // What a kernel printed is there before anybody learns that it has finished.
    if (uses_.text != nullptr && uses_.printing.possible()) uses_.text->Drain();
    SendProgress();
  }
  reached_.clear();
  acting_ = false;
  if (wake_log_thread.load(std::memory_order_seq_cst)) uses_.up.PokeConsumer();
  return true;
}

// In the log's order, too: what hangs on a place may look at what the places before have done.
void Completion::Finish() {
  for (auto& reached : reached_) {
    bool well = reached.stream->context->failed == 0;
    if (well && reached.drained && uses_.printing.possible()) Settle(*reached.stream);
    for (auto& marker : reached.markers) order_.push_back({&marker, reached.stream.get(), well});
  }
  if (reached_.size() > 1) {
    std::ranges::stable_sort(order_, {}, [](const Place& place) { return place.marker->acts_for; });
  }
  for (auto& [marker, stream, well] : order_) {
    if (marker->calls != 0) uses_.gates.Finished(stream->context->device, marker->calls);
    for (auto& action : marker->actions) action(well && marker->good);
    if (marker->event != nullptr) uses_.driver.cuEventDestroy_v2(marker->event);
  }
  order_.clear();
}

// In the log's order: what a stream waited for stands before its wait, so nobody sees an event
// finished before the event of another stream on which it hung.
void Completion::SendProgress() {
  struct Mark {
    uint64_t position;
    Stream* stream;
    bool push;
  };
  std::vector<Mark> marks;
  for (auto& reached : reached_) {
    // Earlier marks of a stream matter only where another stream's come between.
    for (auto& marker : reached.markers) {
      bool between = reached_.size() > 1 && marker.push && marker.position < reached.position;
      if (between) marks.push_back({marker.position, reached.stream.get(), true});
    }
    marks.push_back({reached.position, reached.stream.get(), reached.drained || reached.push});
  }
  std::ranges::stable_sort(marks, {}, &Mark::position);
  for (const Mark& mark : marks) {
    if (!uses_.timelines.Settled(*mark.stream, mark.position, mark.push)) continue;
    uses_.down.Progress(mark.stream->id, mark.position);
  }
}

void Completion::Settle(Stream& stream) {
  // The log thread may just be leaving; if it goes on issuing, the next marker tells.
  if (!TryForLong(stream.issue_mutex)) return;
  CUresult result = CUDA_SUCCESS;
  {
    base::MutexLock issue(stream.issue_mutex, base::AdoptLock());
    if (stream.unmarked != 0 || stream.capturing || stream.dead) return;
    if (!uses_.timelines.Drained(stream)) return;
    base::MutexLock capture(stream.context->capture_mutex);
    result = stream.kind == StreamKind::kLegacy ? AskLegacy(stream) : Synchronize(stream);
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    uses_.failures.DriverFailed(*stream.context, uses_.timelines.FirstUnfinished(stream), result,
                                "a call of a stream");
  }
}

CUresult Completion::Synchronize(const Stream& stream) {
  uses_.current_context.Set(*stream.context);
  return uses_.driver.cuStreamSynchronize(stream.handle);
}

// Waiting for the legacy stream may mean waiting for all blocking streams, or spoil a capture.
CUresult Completion::AskLegacy(const Stream& stream) {
  Context& context = *stream.context;
  if (stream.context->captures != 0) return CUDA_ERROR_NOT_READY;
  if (!context.legacy_mutex.TryLock()) return CUDA_ERROR_NOT_READY;
  base::MutexLock gate(context.legacy_mutex, base::AdoptLock());
  bool idle = std::ranges::all_of(context.blocking,
                                  [](const Stream* other) { return other->unfinished == 0; });
  if (idle) return Synchronize(stream);
  uses_.current_context.Set(context);
  return uses_.driver.cuStreamQuery(stream.handle);
}

void Completion::LookForFaults() {
  for (auto& stream : uses_.timelines.Watched()) {
    if (stream->context->failed == 0) Check(*stream);
  }
}

void Completion::Check(Stream& stream) {
  if (!stream.issue_mutex.TryLock()) return;
  CUresult result = CUDA_SUCCESS;
  {
    base::MutexLock issue(stream.issue_mutex, base::AdoptLock());
    if (stream.capturing || stream.dead) return;
    base::MutexLock capture(stream.context->capture_mutex);
    if (stream.kind == StreamKind::kLegacy && stream.context->captures != 0) return;
    uses_.current_context.Set(*stream.context);
    result = uses_.driver.cuStreamQuery(stream.handle);
  }
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return;
  uses_.failures.DriverFailed(*stream.context, uses_.timelines.FirstUnfinished(stream), result,
                              "a call of a stream");
}

}  // namespace longwire::worker
