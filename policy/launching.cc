#include "policy/launching.h"

#include <string>

namespace longwire::policy {
namespace {

constexpr uint32_t kHighestPriority = 100;  // as rules have it
constexpr uint32_t kLastClusters = 2;

bool IsFrom0To(uint32_t value, uint32_t most) {
  return value == LW_AS_THE_PROGRAM_SAYS || value <= most;
}

// Empty, or what is wrong with the answer.
std::string Problem(const lw_launch& launch) {
  if (!IsFrom0To(launch.priority, kHighestPriority)) {
    return "a priority of " + std::to_string(launch.priority) + " is not from 0 to 100";
  }
  if (!IsFrom0To(launch.shared_memory, 100)) {
    return std::to_string(launch.shared_memory) + " percent of shared memory is not from 0 to 100";
  }
  if (!IsFrom0To(launch.clusters, kLastClusters)) return "clusters is neither 0, 1 nor 2";
  return launch.each > 1 ? "each is neither 0 nor 1" : "";
}

}  // namespace

void SetUnanswered(lw_launch* launch) {
  launch->priority = launch->shared_memory = launch->clusters = LW_AS_THE_PROGRAM_SAYS;
  launch->each = 0;
}

bool AskLaunch(Program& program, lw_launch* launch) {
  SetUnanswered(launch);
  if (program.Ask(Hook::kLaunch, launch)) {
    const std::string problem = Problem(*launch);
    if (problem.empty()) return true;
    program.Refuse(Hook::kLaunch, problem);
  }
  SetUnanswered(launch);
  return false;
}

}  // namespace longwire::policy
