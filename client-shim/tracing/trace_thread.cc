#include "client-shim/tracing/trace_thread.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/reason.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/properties.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
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

// What is asked of one session's worker.
class SessionTrace {
 public:
  SessionTrace(ClientSession& session, TraceWriter& writer) : session_(session), writer_(writer) {}

  // Names it in the file, and has it measure, if it can.
  void Begin();
  // Calls that have not ended; 0 also if the server cannot be asked any more.
  uint64_t Read();
  void Write() { writer_.Write(spans_, traced_); }
  void Finish();
  uint64_t lost() const { return lost_; }

 private:
  void CompareClocks(int round_trips);
  uint64_t ReadSpans();

  ClientSession& session_;
  TraceWriter& writer_;
  TracedSession traced_;
  std::vector<calls::CallSpan> spans_;
  uint64_t lost_ = 0;
  bool measures_ = false;
};

void SessionTrace::Begin() {
  const wire::OpenReply& opened = session_.opened();
  traced_.server = session_.server();
  traced_.name = session_.name();
  for (size_t i = 0; i < opened.devices.size(); ++i) {
    traced_.devices.push_back(DeviceByServerOrdinal(session_, static_cast<int>(i)));
  }
  writer_.Begin(traced_, opened);
  if (opened.protocol < kMeasures) {
    Say("%s%sthe server is too old to measure calls: the trace has only what this host sees; "
        "upgrade longwired",
        traced_.name.c_str(), traced_.name.empty() ? "" : ": ");
    return;
  }
  calls::lwSpansMeasure measure;
  measure.on = true;
  if (session_.CallAndWait({}, measure).code != CUDA_SUCCESS) return;
  measures_ = true;
  CompareClocks(kFirstRoundTrips);
  writer_.WriteClock(traced_);
}

void SessionTrace::CompareClocks(int round_trips) {
  for (int i = 0; i < round_trips; ++i) {
    const uint64_t sent = TraceNow();
    auto answer = session_.CallAndWait({}, calls::lwSpansRead{});
    if (answer.code != CUDA_SUCCESS) return;
    traced_.clock.Add(sent, answer.reply.now, TraceNow());
  }
  traced_.clock.Settle();
}

uint64_t SessionTrace::ReadSpans() {
  calls::lwSpansRead read;
  read.most = kSpansAtOnce;
  while (true) {
    auto answer = session_.CallAndWait({}, read);
    if (answer.code != CUDA_SUCCESS) return 0;
    const auto& spans = answer.reply.spans;
    spans_.insert(spans_.end(), spans.begin(), spans.end());
    for (const auto& named : answer.reply.names) writer_.Name(traced_, named.function, named.name);
    lost_ = answer.reply.lost;
    if (spans.size() < kSpansAtOnce || spans_.size() >= kSpansOfRound) return answer.reply.pending;
  }
}

uint64_t SessionTrace::Read() {
  spans_.clear();
  if (!measures_ || session_.ended() != CUDA_SUCCESS) return 0;
  // The clocks after them: then all their times are between two comparisons.
  const uint64_t pending = ReadSpans();
  CompareClocks(kRoundTrips);
  return pending;
}

void SessionTrace::Finish() {
  if (!measures_) return;
  writer_.WriteClock(traced_);
  if (session_.ended() == CUDA_SUCCESS) session_.CallAndWait({}, calls::lwSpansMeasure{});
}

class Trace {
 public:
  // False if there is no file to write.
  bool Start();
  void RunThread();
  void End();

 private:
  // One round: false when nothing more comes.
  bool Step() LONGWIRE_REQUIRES(work_);
  void SayProblem() LONGWIRE_REQUIRES(work_);
  void Finish() LONGWIRE_REQUIRES(work_);

  base::Mutex work_;  // held while its thread waits for the servers
  TraceFile file_ LONGWIRE_GUARDED_BY(work_);
  TraceWriter writer_ LONGWIRE_GUARDED_BY(work_){file_};
  std::vector<SessionTrace> sessions_ LONGWIRE_GUARDED_BY(work_);
  Notes notes_ LONGWIRE_GUARDED_BY(work_);
  uint64_t lost_here_ LONGWIRE_GUARDED_BY(work_) = 0;
  uint64_t pending_ LONGWIRE_GUARDED_BY(work_) = 0;
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
  writer_.Begin(TraceNow());
  for (ClientSession* session : Sessions()) sessions_.emplace_back(*session, writer_).Begin();
  return true;
}

bool Trace::Step() {
  if (ended_) return false;
  pending_ = 0;
  for (SessionTrace& session : sessions_) pending_ += session.Read();
  // After the spans: what was sent is noted before it is measured.
  TheRecorder().Take(&notes_);
  lost_here_ += notes_.lost;
  writer_.Write(notes_);
  for (SessionTrace& session : sessions_) session.Write();
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
  uint64_t lost_there = 0;
  for (SessionTrace& session : sessions_) {
    session.Finish();
    lost_there += session.lost();
  }
  file_.Close();
  SayProblem();
  if (lost_here_ + lost_there != 0) {
    Say("the trace in %s lacks %llu notes and %llu measured calls, which came faster than they are "
        "written",
        file_.path().c_str(), static_cast<unsigned long long>(lost_here_),
        static_cast<unsigned long long>(lost_there));
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
