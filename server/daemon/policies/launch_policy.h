// The policy that has the hook of launches: workers ask about functions that they have not asked
// about, and keep the answers. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/program.h"
#include "server/rules/launches.h"

namespace longwire::daemon {

class LaunchPolicy {
 public:
  // Tells all workers that the policy is another one, or none.
  using Tell = std::function<void(const launches::AskLaunches& ask)>;
  explicit LaunchPolicy(Tell tell) : tell_(std::move(tell)) {}

  void Use(std::shared_ptr<policy::Program> program);
  // Reports to nobody any more: the sessions are ending.
  void Stop();
  // Drops a policy that has ended, wherever that was found out: what it has said holds no longer.
  void DropEnded();
  // What a worker is to hear first.
  launches::AskLaunches Current() const { return {number_.load()}; }
  // `device`: as the driver counts.
  launches::LaunchAnswer Answer(uint64_t session, const std::string& tenant, uint32_t device,
                                const launches::AskLaunch& ask);

 private:
  std::shared_ptr<policy::Program> program() {
    base::MutexLock lock(mutex_);
    return program_;
  }

  std::atomic<uint64_t> number_{0};  // of the policy; 0: there is none
  base::Mutex mutex_{base::ranks::kLaunchPolicy};
  Tell tell_ LONGWIRE_GUARDED_BY(mutex_);
  std::shared_ptr<policy::Program> program_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
