#include "server/worker/completion.h"

#include <sched.h>

#include <algorithm>

#include "server/worker/session.h"

namespace longwire::worker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{200};  // the latest that a finished stream is noticed
constexpr int kLockTries = 50;
constexpr milliseconds kFaultCheck{5};  // without progress

}  // namespace

void Completion::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Completion::Stop() {
  session_.timelines().Stop();
  if (thread_.joinable()) thread_.join();
}

// A program that waited goes on at once: its next work is looked for before sleeping.
bool Completion::LookForWork() {
  auto begun = Clock::now();
  while (!session_.over() && !session_.timelines().anything_watched()) {
    if (Clock::now() - begun >= idle_spin_.Spin()) break;
    sched_yield();
  }
  bool works = session_.timelines().WaitForWork();
  idle_spin_.Waited(Clock::now() - begun);
  return works;
}

void Completion::Run() {
  session_.EnterThread();
  wire::SpinPrediction spin(wire::AllowedCores());
  while (LookForWork()) {
    if (session_.over()) return;
    auto last_progress = Clock::now();
    auto next_check = last_progress + kFaultCheck;
    microseconds sleep = kShortestSleep;
    while (!session_.over()) {
      if (Step()) {
        auto now = Clock::now();
        spin.Waited(now - last_progress);
        last_progress = now;
        next_check = last_progress + kFaultCheck;
        sleep = kShortestSleep;
        continue;
      }
      if (!session_.timelines().anything_watched()) break;
      auto now = Clock::now();
      auto part = spin.Next(now - last_progress);
      if (part.look.count() > 0) {
        sched_yield();
        continue;
      }
      if (now >= next_check) {
        LookForFaults();
        next_check = now + kFaultCheck;
      }
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(sleep, part.sleep));
      sleep = std::min(sleep + sleep / 4, kLongestSleep);
    }
  }
}

bool Completion::Step() {
  acting_ = true;  // before anything is taken out of what is watched
  session_.timelines().Collect(&reached_);
  if (reached_.empty()) {
    acting_ = false;
    return false;
  }
  {
    DownWriter::Together together(session_.down());
    Finish();
    // What a kernel printed is there before anybody learns that it has finished.
    if (session_.printing().possible()) session_.SendDeviceText();
    SendProgress();
  }
  reached_.clear();
  acting_ = false;
  if (wake_log_thread.load(std::memory_order_seq_cst)) session_.WakeLogThread();
  return true;
}

// In the log's order, too: what hangs on a place may look at what the places before have done.
void Completion::Finish() {
  for (auto& reached : reached_) {
    bool well = reached.stream->context->failed == 0;
    if (well && reached.drained && session_.printing().possible()) Settle(*reached.stream);
    for (auto& marker : reached.markers) order_.push_back({&marker, reached.stream.get(), well});
  }
  if (reached_.size() > 1) {
    std::ranges::stable_sort(order_, {}, [](const Place& place) { return place.marker->acts_for; });
  }
  for (auto& [marker, stream, well] : order_) {
    if (marker->calls != 0) session_.gates().Finished(stream->context->device, marker->calls);
    for (auto& action : marker->actions) action(well && marker->good);
    if (marker->event != nullptr) session_.driver().cuEventDestroy_v2(marker->event);
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
    if (!session_.timelines().Settled(*mark.stream, mark.position, mark.push)) continue;
    session_.down().Progress(mark.stream->id, mark.position);
  }
}

void Completion::Settle(Stream& stream) {
  // The log thread may just be leaving; if it goes on issuing, the next marker tells.
  std::unique_lock issue(stream.issue_mutex, std::try_to_lock);
  for (int i = 0; i < kLockTries && !issue; ++i) {
    sched_yield();
    (void)issue.try_lock();
  }
  if (!issue || stream.unmarked != 0 || stream.capturing || stream.dead) return;
  if (!session_.timelines().Drained(stream)) return;
  std::unique_lock capture(stream.context->capture_mutex);
  std::unique_lock<std::mutex> gate;
  bool idle = true;
  if (stream.kind == StreamKind::kLegacy) {
    // Waiting for the legacy stream may mean waiting for all blocking streams, or spoil a capture.
    if (stream.context->captures != 0) return;
    gate = std::unique_lock(stream.context->legacy_mutex, std::try_to_lock);
    if (!gate) return;
    auto& blocking = stream.context->blocking;
    idle = std::all_of(blocking.begin(), blocking.end(),
                       [](const Stream* other) { return other->unfinished == 0; });
  }
  session_.SetContext(*stream.context);
  CUresult result = idle ? session_.driver().cuStreamSynchronize(stream.handle)
                         : session_.driver().cuStreamQuery(stream.handle);
  if (gate) gate.unlock();
  capture.unlock();
  issue.unlock();
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    session_.failures().DriverFailed(*stream.context, session_.timelines().FirstUnfinished(stream),
                                     result, "a call of a stream");
  }
}

void Completion::LookForFaults() {
  for (auto& stream : session_.timelines().Watched()) {
    if (stream->context->failed == 0) Check(*stream);
  }
}

void Completion::Check(Stream& stream) {
  std::unique_lock issue(stream.issue_mutex, std::try_to_lock);
  if (!issue || stream.capturing || stream.dead) return;
  std::unique_lock capture(stream.context->capture_mutex);
  if (stream.kind == StreamKind::kLegacy && stream.context->captures != 0) return;
  session_.SetContext(*stream.context);
  CUresult result = session_.driver().cuStreamQuery(stream.handle);
  capture.unlock();
  issue.unlock();
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return;
  session_.failures().DriverFailed(*stream.context, session_.timelines().FirstUnfinished(stream),
                                   result, "a call of a stream");
}

}  // namespace longwire::worker
