#include "server/daemon/policies/launch_policy.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/name_number.h"
#include "policy/launching.h"

namespace longwire::daemon {
namespace {

// Workers of the daemon before may have answers by its numbers.
uint64_t NumberForWorkers() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

lw_launch ContextOf(uint64_t session, const std::string& tenant, uint32_t device,
                    const launches::AskLaunch& ask) {
  lw_launch launch{};
  launch.now =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  launch.session = session;
  launch.tenant = base::NumberOfName(tenant);
  launch.kernel = ask.kernel;
  launch.module = ask.module;
  launch.device = device;
  std::ranges::copy(ask.shape.grid, launch.grid);
  std::ranges::copy(ask.shape.block, launch.block);
  launch.shared_bytes = ask.shape.shared_bytes;
  return launch;
}

}  // namespace

void LaunchPolicy::Use(std::shared_ptr<policy::Program> program) {
  base::MutexLock lock(mutex_);
  if (program == program_) return;
  program_ = std::move(program);
  number_ = program_ == nullptr ? 0 : NumberForWorkers();
  if (tell_) tell_({number_.load()});
}

void LaunchPolicy::Stop() {
  base::MutexLock lock(mutex_);
  tell_ = nullptr;
}

void LaunchPolicy::DropEnded() {
  const auto now = program();
  if (now != nullptr && now->ended()) Use(nullptr);
}

launches::LaunchAnswer LaunchPolicy::Answer(uint64_t session, const std::string& tenant,
                                            uint32_t device, const launches::AskLaunch& ask) {
  launches::LaunchAnswer answer{ask.request, {}, false};
  const auto asked = program();
  if (asked == nullptr) return answer;
  lw_launch launch = ContextOf(session, tenant, device, ask);
  const bool answered = policy::AskLaunch(*asked, &launch);
  if (asked->ended()) DropEnded();
  if (!answered) return answer;
  static_assert(LW_AS_THE_PROGRAM_SAYS == rules::kUnset);
  answer.change.priority = launch.priority;
  answer.change.shared_memory = launch.shared_memory;
  answer.change.clusters = launch.clusters;
  answer.each = launch.each == 1;
  return answer;
}

}  // namespace longwire::daemon
