// Runs the core against pseudo sessions on pseudo devices, on a virtual clock: days in seconds, and
// the same seed gives the same day.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/simulate/session.h"

namespace longwire::scheduler::simulate {

struct TenantResult {
  TenantName tenant;
  Time gpu_time{0};
  double share = 0;  // of all GPU time used on all devices
  uint64_t requests = 0;
};

struct Result {
  std::vector<TenantResult> tenants;  // in the order of their profiles
  uint64_t latency_critical_requests = 0;
  double wait_p50 = 0;  // of these, in microseconds: how much longer than alone
  double wait_p99 = 0;
  Time longest_starved{0};  // the longest a best-effort session had work and a closed gate
  Counters counters;
  uint64_t events = 0;  // given to the core
  double busy = 0;      // of the devices' time
};

class Simulation {
 public:
  // From worker to scheduler or back: two hops through rings, one of them asleep.
  static constexpr Time kHop = std::chrono::microseconds(10);

  Simulation(const std::vector<Profile>& profiles, const Policy& policy, const Options& options,
             uint64_t seed);
  // Goes on until then. Once.
  Result Run(Time until);

 private:
  // Time, order of making, session's index, what.
  using Entry = std::tuple<Time, uint64_t, uint32_t, Later>;

  Time NextTime() const;
  void StepAt(Time now);
  void Tell(Time now, const Event& event);
  void After(Time now, SimulatedSession& session, Appointment appointment);
  Result Summarize(Time until);

  std::vector<Profile> profiles_;
  Random random_;
  Core core_;
  std::map<DeviceId, Gpu> gpus_;
  std::vector<std::unique_ptr<SimulatedSession>> sessions_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> calendar_;
  std::deque<std::pair<Time, ActivityReported>> reports_;
  std::deque<std::pair<Time, Decision>> decisions_;
  uint64_t entries_ = 0;
  uint64_t events_ = 0;
};

}  // namespace longwire::scheduler::simulate
