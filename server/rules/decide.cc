#include "server/rules/decide.h"

#include <algorithm>

#include "server/rules/calls.h"
#include "server/rules/pattern.h"
#include "wire/guards.h"

namespace longwire::rules {
namespace {

void Take(uint32_t from, uint32_t* to) {
  if (from != kUnset) *to = from;
}

void TakeSizes(const uint32_t (&from)[3], uint32_t (&to)[3]) {
  if (from[0] != 0) std::copy_n(from, 3, to);
}

bool Fits(const std::string& pattern, std::string_view name) {
  return pattern.empty() || Matches(pattern, name);
}

bool Denies(const Rule& rule, std::string_view call) {
  return !wire::GuardIsOff("deny") && std::ranges::find(rule.deny, call) != rule.deny.end();
}

bool IsOfAll(const Rule& rule) { return rule.module.empty() && rule.kernel.empty(); }

}  // namespace

bool LaunchDecision::empty() const {
  return change == LaunchChange() && !validate && retry.count == 0 && denied_by.empty();
}

LaunchDecision DecideLaunch(std::span<const Rule> rules, std::string_view module,
                            std::string_view kernel) {
  LaunchDecision decision;
  for (const Rule& rule : rules) {
    if (!Fits(rule.module, module) || !Fits(rule.kernel, kernel)) continue;
    Take(rule.launch.priority, &decision.change.priority);
    Take(rule.launch.shared_memory, &decision.change.shared_memory);
    Take(rule.launch.clusters, &decision.change.clusters);
    TakeSizes(rule.launch.grid, decision.change.grid);
    TakeSizes(rule.launch.block, decision.change.block);
    decision.validate |= rule.validate;
    if (rule.retry.count != 0) decision.retry = rule.retry;
    if (Denies(rule, kLaunchKernel)) decision.denied_by = rule.name;
  }
  return decision;
}

std::vector<uint32_t> RulesOfLaunch(std::span<const Rule> rules, std::string_view module,
                                    std::string_view kernel) {
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < rules.size(); ++i) {
    if (!DecideLaunch(rules.subspan(i, 1), module, kernel).empty()) places.push_back(i);
  }
  return places;
}

std::vector<uint32_t> RulesOfJit(std::span<const Rule> rules, std::string_view module) {
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < rules.size(); ++i) {
    if (!(DecideJit(rules.subspan(i, 1), module) == JitChange())) places.push_back(i);
  }
  return places;
}

JitChange DecideJit(std::span<const Rule> rules, std::string_view module) {
  JitChange change;
  for (const Rule& rule : rules) {
    if (!Fits(rule.module, module)) continue;
    Take(rule.jit.optimization, &change.optimization);
    Take(rule.jit.target, &change.target);
    Take(rule.jit.cache, &change.cache);
    Take(rule.jit.registers, &change.registers);
  }
  return change;
}

std::string DeniedBy(std::span<const Rule> rules, std::string_view call, std::string_view module) {
  for (const Rule& rule : rules) {
    if (!rule.kernel.empty() || !Denies(rule, call)) continue;
    if (rule.module.empty() || (!module.empty() && Matches(rule.module, module))) return rule.name;
  }
  return {};
}

Retry RetryOfAllocations(std::span<const Rule> rules) {
  Retry retry;
  for (const Rule& rule : rules) {
    if (IsOfAll(rule) && rule.retry.count != 0) retry = rule.retry;
  }
  return retry;
}

bool ValidatesCopies(std::span<const Rule> rules) {
  return std::ranges::any_of(rules,
                             [](const Rule& rule) { return rule.validate && IsOfAll(rule); });
}

}  // namespace longwire::rules
