// A pseudo session and its worker: holds what is queued, keeps to gate and budget, reports.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/simulate/gpu.h"
#include "scheduler/simulate/profile.h"
#include "scheduler/simulate/random.h"

namespace longwire::scheduler::simulate {

// What a session wants to happen later; Simulation puts it into its calendar.
enum class Later { kNothing, kRequest, kLaunch };
struct Appointment {
  Later what = Later::kNothing;
  Time at{0};
};

class SimulatedSession {
 public:
  // `id` counts from 1 and stands for it on its device too.
  SimulatedSession(SessionId id, const Profile& profile, Gpu& gpu, Random& random)
      : id_(id), profile_(profile), gpu_(gpu), random_(random) {}

  SessionInfo Info() const;
  // When the first request comes.
  Appointment Begin();
  Appointment OnRequest(Time now);
  void OnLaunch(Time now);
  void OnDecision(Time now, const Decision& decision);
  // The kernel on the device has ended.
  Appointment OnKernelEnd(Time now);

  // What the worker has to say since it was last asked, if anything.
  std::optional<ActivityReported> TakeReport(Time now);

  SessionId id() const { return id_; }
  const Profile& profile() const { return profile_; }
  Time gpu_time() const { return gpu_time_; }
  uint64_t requests() const { return requests_; }
  // How much longer each request took than it would have alone, in microseconds.
  const std::vector<float>& waits() const { return waits_; }
  // The longest it had calls queued behind a closed gate.
  Time longest_starved() const { return longest_starved_; }

 private:
  Activity activity() const;
  bool best_effort() const { return profile_.priority_class == PriorityClass::kBestEffort; }
  void Issue(Time now);
  void StartKernel(Time now);
  Appointment EndRequest(Time now);
  Time Think(Time now);
  void WatchGate(Time now);

  const SessionId id_;
  const Profile& profile_;
  Gpu& gpu_;
  Random& random_;
  Decision gate_;
  uint32_t to_launch_ = 0;  // kernels of the request that the program has yet to launch
  uint32_t queued_ = 0;     // launched by it, not given to the device
  uint32_t in_flight_ = 0;  // given to the device
  bool runs_ = false;       // the first of these
  Time kernel_{0};          // the length of that one
  Time began_{0};           // the request
  Time alone_{0};           // what it would have taken so far on an idle device
  Time gpu_time_{0};
  Activity told_ = Activity::kIdle;
  Time told_at_{0};
  bool owes_report_ = false;
  Time starves_since_ = kForever;
  Time longest_starved_{0};
  uint64_t requests_ = 0;
  std::vector<float> waits_;
};

}  // namespace longwire::scheduler::simulate
