// What the operator's policy says about launches (docs/policies.md). The daemon runs it; the first
// launch of a function asks, and waits for the answer a moment. The answer is kept with the
// function as long as the policy is the same.
//
// A session without such a policy pays nothing: the question stands behind SessionRules::any().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/rules/launches.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

struct Function;

// How long a launch waits for an answer; then it goes as the program says, and later ones, too,
// until the answer is there.
inline constexpr std::chrono::milliseconds kLaunchPatience{50};

// What is known of one function, or of one of its shapes.
struct LaunchAdvice {
  uint64_t request = 0;   // pending; 0: answered
  launches::Shape shape;  // of the launch that asked
  std::chrono::steady_clock::time_point asked{};
  std::vector<CUlaunchAttribute> attributes;
  bool is_asked() const { return asked != std::chrono::steady_clock::time_point(); }
};

// Kept with the function, by the policy of that number.
struct FunctionAdvice {
  uint64_t policy = 0;
  bool each = false;     // shapes have answers of their own
  bool settled = false;  // `whole` is answered, and counts for all shapes
  LaunchAdvice whole;
  std::map<launches::Shape, LaunchAdvice> shapes;
};

class LaunchAnswers {
 public:
  // `control`: the daemon's socket; -1 if there is none.
  LaunchAnswers(const DriverTable& driver, int control) : driver_(driver), control_(control) {}

  // Any thread. 0: there is no policy.
  void Use(uint64_t policy) { policy_.store(policy, std::memory_order_release); }
  bool on() const { return policy_.load(std::memory_order_acquire) != 0; }
  // False if that was no answer that is waited for.
  bool Arrived(const launches::LaunchAnswer& answer);

  // The next two are the log thread's; a context must be current.
  // False: the launch has to wait. Else *attributes are what the policy wants; null: nothing.
  bool Decide(Function& function, uint32_t device, const launches::Shape& shape,
              const std::vector<CUlaunchAttribute>** attributes);
  // True if no launch of the function has to be looked at: it is answered, and nothing is wanted.
  bool LeavesAlone(const Function& function) const;

 private:
  FunctionAdvice& AdviceOn(Function& function) const;
  static LaunchAdvice* PlaceOf(FunctionAdvice& advice, const launches::Shape& shape);
  void Keep(const launches::LaunchAnswer& answer, FunctionAdvice* advice,
            LaunchAdvice* about) const;
  void Ask(const Function& function, uint32_t device, const launches::Shape& shape,
           LaunchAdvice* advice);
  std::optional<launches::LaunchAnswer> Take(uint64_t request);

  const DriverTable& driver_;
  const int control_;
  std::atomic<uint64_t> policy_{0};
  uint64_t next_request_ = 1;  // log thread only
  bool told_late_ = false;     // likewise
  base::Mutex mutex_{base::ranks::kLaunchAnswers};
  // By request; of pending ones.
  std::map<uint64_t, std::optional<launches::LaunchAnswer>> pending_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
