#include "client-shim/tracing/trace_thread.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/reason.h"
#include "client-shim/connect/options.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
#include "client-shim/tracing/server_clock.h"
#include "client-shim/tracing/trace_file.h"
#include "client-shim/tracing/trace_writer.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRound{50};          // how often notes are written
constexpr milliseconds kPatience{2000};     // at exit, for what the device has not finished
constexpr int kRoundTrips = 4;              // that compare the clocks, each round
constexpr int kFirstRoundTrips = 16;        // the same, at the beginning
constexpr uint32_t kSpansAtOnce = 512;      // in one answer
constexpr size_t kSpansOfRound = 64 << 10;  // then they are written
constexpr uint32_t kMeasures = 14;          // the first version of the protocol whose workers do

class Trace {
 public:
  // False if there is no file to write.
  bool Start();
  void RunThread();
  void End();

 private:
  bool Begin() LONGWIRE_REQUIRES(work_);
  // One round: false when nothing more comes.
  bool Step() LONGWIRE_REQUIRES(work_);
  void CompareClocks(int round_trips) LONGWIRE_REQUIRES(work_);
  // Calls that have not ended; 0 also if the server cannot be asked any more.
  uint64_t ReadSpans() LONGWIRE_REQUIRES(work_);
  void SayProblem() LONGWIRE_REQUIRES(work_);
  void Finish() LONGWIRE_REQUIRES(work_);

  base::Mutex work_;  // held while its thread waits for the server
  TraceFile file_ LONGWIRE_GUARDED_BY(work_);
  TraceWriter writer_ LONGWIRE_GUARDED_BY(work_){file_};
  ServerClock clock_ LONGWIRE_GUARDED_BY(work_);
  Notes notes_ LONGWIRE_GUARDED_BY(work_);
  std::vector<calls::CallSpan> spans_ LONGWIRE_GUARDED_BY(work_);
  uint64_t lost_here_ LONGWIRE_GUARDED_BY(work_) = 0;
  uint64_t lost_there_ LONGWIRE_GUARDED_BY(work_) = 0;
  uint64_t pending_ LONGWIRE_GUARDED_BY(work_) = 0;
  bool measures_ LONGWIRE_GUARDED_BY(work_) = false;
  bool ended_ LONGWIRE_GUARDED_BY(work_) = false;
};

Trace& TheTrace() {
  static NeverDestroyed<Trace> trace;
  return *trace;
}

bool Trace::Start() {
  const Options& options = ProcessOptions();
  base::MutexLock lock(work_);
  std::string sentence;
  if (!file_.Open(options.trace_file, options.trace_file_limit, &sentence)) {
    Say("%s", sentence.c_str());
    ended_ = true;
    return false;
  }
  if (file_.path() != options.trace_file) {
    Say("another process has %s: the trace of this one is %s", options.trace_file.c_str(),
        file_.path().c_str());
  }
  measures_ = Begin();
  return true;
}

bool Trace::Begin() {
  ClientSession& session = TheSession();
  writer_.Begin(session.opened(), TraceNow());
  if (session.opened().protocol < kMeasures) {
    Say("the server is too old to measure calls: the trace has only what this host sees; upgrade "
        "longwired");
    return false;
  }
  calls::lwSpansMeasure measure;
  measure.on = true;
  if (session.CallAndWait({}, measure).code != CUDA_SUCCESS) return false;
  CompareClocks(kFirstRoundTrips);
  writer_.WriteClock(clock_);
  return true;
}

void Trace::CompareClocks(int round_trips) {
  for (int i = 0; i < round_trips; ++i) {
    const uint64_t sent = TraceNow();
    auto answer = TheSession().CallAndWait({}, calls::lwSpansRead{});
    if (answer.code != CUDA_SUCCESS) return;
    clock_.Add(sent, answer.reply.now, TraceNow());
  }
  clock_.Settle();
}

uint64_t Trace::ReadSpans() {
  spans_.clear();
  calls::lwSpansRead read;
  read.most = kSpansAtOnce;
  while (true) {
    auto answer = TheSession().CallAndWait({}, read);
    if (answer.code != CUDA_SUCCESS) return 0;
    const auto& spans = answer.reply.spans;
    spans_.insert(spans_.end(), spans.begin(), spans.end());
    for (const auto& named : answer.reply.names) writer_.Name(named.function, named.name);
    lost_there_ = answer.reply.lost;
    if (spans.size() < kSpansAtOnce || spans_.size() >= kSpansOfRound) return answer.reply.pending;
  }
}

bool Trace::Step() {
  if (ended_) return false;
  pending_ = 0;
  if (measures_ && ClientSession::over() == CUDA_SUCCESS) {
    // The clocks after them: then all their times are between two comparisons.
    pending_ = ReadSpans();
    CompareClocks(kRoundTrips);
  } else {
    spans_.clear();
  }
  // After the spans: what was sent is noted before it is measured.
  TheRecorder().Take(&notes_);
  lost_here_ += notes_.lost;
  writer_.Write(notes_);
  writer_.Write(spans_, clock_);
  file_.Flush();
  SayProblem();
  if (!file_.full()) return true;
  Finish();
  return false;
}

void Trace::SayProblem() {
  std::string problem = file_.TakeProblem();
  if (!problem.empty()) Say("%s", problem.c_str());
}

void Trace::Finish() {
  ended_ = true;
  recording.store(false);
  if (measures_) {
    writer_.WriteClock(clock_);
    if (ClientSession::over() == CUDA_SUCCESS) {
      TheSession().CallAndWait({}, calls::lwSpansMeasure{});
    }
  }
  file_.Close();
  SayProblem();
  if (lost_here_ + lost_there_ != 0) {
    Say("the trace in %s lacks %llu notes and %llu measured calls, which came faster than they are "
        "written",
        file_.path().c_str(), static_cast<unsigned long long>(lost_here_),
        static_cast<unsigned long long>(lost_there_));
  }
}

void Trace::RunThread() {
  while (true) {
    std::this_thread::sleep_for(kRound);
    base::MutexLock lock(work_);
    if (!Step()) return;
  }
}

void Trace::End() {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  base::MutexLock lock(work_);
  while (Step() && pending_ != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds{1});
  }
  if (!ended_) Finish();
}

}  // namespace

void StartTrace() {
  if (ProcessOptions().trace_file.empty() || !TheTrace().Start()) return;
  recording.store(true);
  bool started = StartThread(
      "longwire-trace", [](void* trace) { static_cast<Trace*>(trace)->RunThread(); }, &TheTrace());
  if (!started) {
    Say("the trace is written when the program ends, with what fits into memory: %s",
        base::ReasonOfNoThread(errno).c_str());
  }
}

void EndTrace() {
  if (!ProcessOptions().trace_file.empty()) TheTrace().End();
}

}  // namespace longwire::shim
