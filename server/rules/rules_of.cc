#include "server/rules/rules_of.h"

#include <algorithm>

#include "server/rules/pattern.h"
#include "server/rules/sizes.h"

namespace longwire::rules {
namespace {

// Values of CUclusterSchedulingPolicy and CUjit_cacheMode, which the configuration does not know.
constexpr uint32_t kSpread = 1, kLoadBalancing = 2;
constexpr uint32_t kCacheGlobal = 1, kCacheAll = 2;
constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr uint32_t kUsualBackOff = 100;  // milliseconds

LaunchChange LaunchOf(const config::LaunchRule& told) {
  LaunchChange launch;
  if (told.has_priority()) launch.priority = told.priority();
  if (told.has_shared_memory()) launch.shared_memory = told.shared_memory();
  if (told.has_clusters()) {
    launch.clusters = told.clusters() == config::spread_out ? kSpread : kLoadBalancing;
  }
  if (told.has_grid()) (void)ParseSizes(told.grid(), launch.grid);
  if (told.has_block()) (void)ParseSizes(told.block(), launch.block);
  return launch;
}

JitChange JitOf(const config::JitRule& told) {
  JitChange jit;
  if (told.has_optimization()) jit.optimization = told.optimization();
  if (told.has_target()) jit.target = told.target();
  if (told.has_cache()) jit.cache = told.cache() == config::l2 ? kCacheGlobal : kCacheAll;
  if (told.has_registers()) jit.registers = told.registers();
  return jit;
}

Rule RuleOf(const config::Rule& told, std::string name) {
  Rule rule;
  rule.name = std::move(name);
  rule.module = told.module();
  rule.kernel = told.kernel();
  rule.launch = LaunchOf(told.launch());
  rule.jit = JitOf(told.jit());
  rule.deny.assign(told.deny().begin(), told.deny().end());
  std::ranges::sort(rule.deny);
  const auto twice = std::ranges::unique(rule.deny);
  rule.deny.erase(twice.begin(), twice.end());
  rule.validate = told.validate();
  rule.retry.count = told.retry().count();
  rule.retry.back_off_milliseconds =
      told.retry().has_back_off()
          ? static_cast<uint32_t>(told.retry().back_off() / kNanosecondsPerMillisecond)
          : kUsualBackOff;
  return rule;
}

template <class List>
void Add(const List& told, const std::string& list, const std::string& program, RuleList* rules) {
  for (int i = 0; i < told.size() && rules->rules.size() < kMaxRules; ++i) {
    const config::Rule& rule = told.Get(i);
    if (rule.has_program() && !MatchesProgram(rule.program(), program)) continue;
    rules->rules.push_back(RuleOf(rule, NameOf(rule, i, list)));
  }
}

}  // namespace

std::string NameOf(const config::Rule& rule, int index, const std::string& list) {
  if (rule.has_name()) return "'" + rule.name() + "'";
  return std::to_string(index + 1) + " of " + list;
}

RuleList RulesOf(const config::Config& config, const std::string& tenant,
                 const std::string& program) {
  RuleList rules;
  Add(config.rules(), "rules", program, &rules);
  for (const config::Tenant& listed : config.tenants()) {
    if (listed.name() == tenant) {
      Add(listed.rules(), "the rules of tenant '" + tenant + "'", program, &rules);
    }
  }
  return rules;
}

}  // namespace longwire::rules
