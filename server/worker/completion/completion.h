// The completion thread: polls the progress page, runs the actions of reached markers, sends
// progress, and queries the driver now and then for streams that make no progress, since they may
// have failed. It sleeps while no work is unfinished.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "server/worker/completion/timeline.h"
#include "wire/rings/ring.h"
#include "wire/rings/spinning.h"

namespace longwire::worker {

class CurrentContext;
class DownWriter;
class Failures;
class Gates;
class Printing;
class TextPipes;

class Completion {
 public:
  struct Uses {
    const DriverTable& driver;
    CurrentContext& current_context;
    Timelines& timelines;
    Gates& gates;
    Printing& printing;
    TextPipes* text;  // null: device printf is not forwarded
    DownWriter& down;
    Failures& failures;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Completion(Uses uses) : uses_(uses) {}
  ~Completion() { Stop(); }

  void Start();
  void Stop();
  // Work is about to be issued: the thread is awake when it is.
  void ExpectWork() { uses_.timelines.ExpectWork(); }

  // Set while the log thread sleeps and is to be woken when work finishes.
  std::atomic<bool> wake_log_thread{false};
  // True while it sends what was reached.
  bool is_acting() const { return acting_; }
  // True while actions of reached markers run; their streams may not be watched any more.
  bool acting() const { return acting_; }

 private:
  void Run();
  // False if the session is over.
  bool LookForWork();
  // Waits until markers are reached, and acts. False if there is nothing to wait for.
  bool WatchForStep();
  // True if a marker was reached.
  bool Step();
  // Runs the actions of the reached markers.
  void Finish();
  void SendProgress();
  // Has the driver, too, complete a stream that has no outstanding markers, which makes it write
  // the text of device printf. Does nothing if more was issued meanwhile.
  void Settle(Stream& stream);
  CUresult Synchronize(const Stream& stream);
  // CUDA_ERROR_NOT_READY if the driver cannot be asked now.
  CUresult AskLegacy(const Stream& stream) LONGWIRE_REQUIRES(stream.context->capture_mutex);
  void LookForFaults();
  void Check(Stream& stream);

  Uses uses_;
  std::atomic<bool> acting_{false};
  struct Place {
    Marker* marker;
    Stream* stream;
    bool well;
  };
  std::vector<Timelines::Reached> reached_;
  std::vector<Place> order_;  // of the reached markers
  wire::SpinPrediction idle_spin_{wire::AllowedCores()};
  wire::SpinPrediction watch_spin_{wire::AllowedCores()};
  std::thread thread_;
};

}  // namespace longwire::worker
