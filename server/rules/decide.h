// What rules say about one module, one kernel, one call. Of two rules that set the same, the later
// one counts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/rules/rule.h"

namespace longwire::rules {

// About the launches of one kernel.
struct LaunchDecision {
  LaunchChange change;
  bool validate = false;
  Retry retry;
  std::string denied_by;  // the rule's name; empty: not denied

  // True if it launches as if there were no rules.
  bool empty() const;
  bool changes_attributes() const {
    return change.priority != kUnset || change.shared_memory != kUnset || change.clusters != kUnset;
  }
};

LaunchDecision DecideLaunch(std::span<const Rule> rules, std::string_view module,
                            std::string_view kernel);
// The places of the rules that say something about these launches; of those that do about how these
// modules are compiled.
std::vector<uint32_t> RulesOfLaunch(std::span<const Rule> rules, std::string_view module,
                                    std::string_view kernel);
std::vector<uint32_t> RulesOfJit(std::span<const Rule> rules, std::string_view module);
// Whatever the rules' kernels: a whole module is compiled.
JitChange DecideJit(std::span<const Rule> rules, std::string_view module);
// The name of the rule that denies the call for that module, or for all if `module` is empty.
std::string DeniedBy(std::span<const Rule> rules, std::string_view call, std::string_view module);
// Of allocations, and whether copies are checked: rules that name a module or kernel say nothing.
Retry RetryOfAllocations(std::span<const Rule> rules);
bool ValidatesCopies(std::span<const Rule> rules);

}  // namespace longwire::rules
