// The commands of transcripts, one class per thing under test. docs/scheduling.md lists them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/placement/placement.h"
#include "scheduler/placement/rebalance.h"
#include "scheduler/pool/pool.h"
#include "scheduler/testing/transcript.h"

namespace longwire::scheduler::testing {

// core, at, open, close, tenant, join, gap, 1/0 (a report), show.
class CoreCommands {
 public:
  // What stands for a built-in policy of that name; the built-in one itself by default.
  using Replace = std::function<std::unique_ptr<Policy>(const std::string& name)>;
  explicit CoreCommands(Replace replace = {});
  // Returns what is printed: decisions with their times.
  std::string Run(const Command& command);

 private:
  Options ReadSharing(const Command& command);  // its policy becomes the last of policies_
  void Restart(const Command& command);
  std::string Tell(const Event& event);
  std::string PassTimeTo(Time time);
  std::string Report(const Command& command);
  std::string AnswerClosing(const Decision& decision);
  std::string Print(const std::vector<Decision>& decisions);
  std::string Show() const;

  const Replace replace_;
  std::vector<std::unique_ptr<Policy>> policies_;
  std::unique_ptr<Core> core_;
  Time now_{0};
  using SeatName = std::pair<SessionId, DeviceId>;
  std::map<SeatName, Decision> told_;
  // Workers of one device answer each closing of a gate by themselves: with what they last had
  // queued, or that it has begun since. Those of several are spoken for by the transcript.
  std::map<SeatName, ActivityReported> queued_;
  std::set<SeatName> begins_;
  std::set<SessionId> wide_;
};

// device, place, occupy, rebalance.
class PlacementCommands {
 public:
  std::string Run(const Command& command);

 private:
  std::string Place(const Command& command);
  void Occupy(const Command& command);
  std::string Rebalance(const Command& command);
  std::map<DeviceId, DeviceLoad> devices_;
  std::vector<Occupant> occupants_;
};

// pool, host, ask, queue.
class PoolCommands {
 public:
  std::string Run(const Command& command);

 private:
  void AddHost(const Command& command);
  std::string Ask(const Command& command);
  std::string Queue(const Command& command);
  std::vector<pool::HostState> hosts_;
};

// simulate SPAN, followed by one line for each tenant.
std::string RunSimulation(const std::vector<Command>& block);

}  // namespace longwire::scheduler::testing
