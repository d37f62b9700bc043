// The completion thread: watches the progress page, runs what hangs on reached markers, sends
// progress, and asks the driver now and then whether a stream that does not move has failed.
// It sleeps for good while nothing is under way.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "server/worker/completion/timeline.h"
#include "wire/ring.h"
#include "wire/spinning.h"

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
    TextPipes* text;  // null: device printf is left alone
    DownWriter& down;
    Failures& failures;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Completion(Uses uses) : uses_(uses) {}
  ~Completion() { Stop(); }

  void Start();
  void Stop();

  // The log thread sleeps and wants to be woken when something finishes.
  std::atomic<bool> wake_log_thread{false};
  // Actions of reached markers are running, though no stream may be watched any more.
  bool acting() const { return acting_; }

 private:
  void Run();
  // False when the session is over.
  bool LookForWork();
  // True if anything was reached.
  bool Step();
  // Runs what hangs on the reached markers.
  void Finish();
  void SendProgress();
  // Makes sure that a stream without outstanding markers is idle in the driver's eyes too, which
  // brings device printf out. Does nothing if more was issued meanwhile.
  void Settle(Stream& stream);
  CUresult Synchronize(const Stream& stream);
  // CUDA_ERROR_NOT_READY: it cannot be asked now.
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
  std::vector<Place> order_;  // of the markers reached
  wire::SpinPrediction idle_spin_{wire::AllowedCores()};
  std::thread thread_;
};

}  // namespace longwire::worker
