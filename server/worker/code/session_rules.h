// The operator's rules for this session (server/rules/rule.h). The daemon sends them before the
// first call, and again when the configuration has changed. What they say about a function is
// decided once for each list of rules and kept with the function (function_rules.h).
//
// A session without rules pays one look at any(), which is false, where calls could be ruled; plain
// launches do not pay even that (LoadedFunctions).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/call_ids.h"
#include "server/rules/decide.h"
#include "server/statistics/page.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

class SessionRules {
 public:
  // `control`: the daemon's socket, for notices; -1 if there is none.
  explicit SessionRules(int control) : control_(control) {}

  // Any thread. In force for launches when the log thread has seen it.
  void Replace(rules::RuleList list);
  // Where to count from now on how often each rule of the list is used; null: nowhere. Any thread.
  // After Replace that is nowhere, for the list is another one.
  void CountIn(std::shared_ptr<statistics::Page> page);
  std::shared_ptr<statistics::Page> page() const {
    base::MutexLock lock(mutex_);
    return page_;
  }
  // The rule of this name, or with this place, was used for something that is no launch.
  void CountCall(const std::string& rule) const;
  void CountCall(uint32_t place) const;
  // Whether there is a policy for launches (launch_answers.h): then all are looked at, until it is
  // known what it says about their functions. Any thread.
  void UsePolicy(bool on);
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Grows with each Replace and UsePolicy.
  uint32_t version() const { return version_.load(std::memory_order_acquire); }
  std::shared_ptr<const std::vector<rules::Rule>> Get() const {
    base::MutexLock lock(mutex_);
    return rules_;
  }

  // The name of the rule that denies the call for all modules, or the one that rules call so;
  // empty: none does.
  std::string DeniedBy(CallId call) const;
  std::string DeniedBy(std::string_view name) const;

  // True while the launch at this position, which failed, waits for its next try. Log thread only,
  // as are the next two.
  bool PausesNow(uint64_t position);
  // True if the launch at this position, which failed, is to be tried again later.
  bool TryAgain(uint64_t position, const rules::Retry& retry, CUresult result);
  void Done(uint64_t position) { pauses_.erase(position); }

  // A line for the daemon's log, and one for the worker's.
  void Notice(const std::string& sentence) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Pause {
    uint32_t tries = 0;
    Clock::time_point until;
  };

  const int control_;
  std::atomic<bool> any_{false};
  std::atomic<uint32_t> version_{1};
  mutable base::Mutex mutex_{base::ranks::kSessionRules};
  bool has_policy_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const std::vector<rules::Rule>> rules_ LONGWIRE_GUARDED_BY(mutex_) =
      std::make_shared<const std::vector<rules::Rule>>();
  std::shared_ptr<statistics::Page> page_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Pause> pauses_;  // log thread only; by position
};

// The pause before try number `tries` (from 0): each is twice as long as the one before.
std::chrono::milliseconds PauseBefore(const rules::Retry& retry, uint32_t tries);

}  // namespace longwire::worker
