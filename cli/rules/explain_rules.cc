#include "cli/rules/explain_rules.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "cli/json/json_object.h"
#include "cli/text.h"
#include "server/rules/decide.h"
#include "server/rules/pattern.h"
#include "server/rules/rules_of.h"

namespace longwire::cli {
namespace {

using rules::kUnset;

std::string SizesText(const uint32_t (&sizes)[3]) {
  return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
}

std::string LaunchText(const rules::LaunchChange& launch) {
  std::string text;
  auto add = [&text](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (launch.priority != kUnset) add("priority " + std::to_string(launch.priority));
  if (launch.shared_memory != kUnset) {
    add("shared memory " + std::to_string(launch.shared_memory) + "%");
  }
  if (launch.clusters != kUnset) {
    add(launch.clusters == 1 ? "clusters spread out" : "clusters balanced by load");
  }
  if (launch.grid[0] != 0) add("grid " + SizesText(launch.grid) + " (unsafe)");
  if (launch.block[0] != 0) add("block " + SizesText(launch.block) + " (unsafe)");
  return text;
}

std::string JitText(const rules::JitChange& jit) {
  std::string text;
  auto add = [&text](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (jit.optimization != kUnset) add("level " + std::to_string(jit.optimization));
  if (jit.target != kUnset) add("target " + std::to_string(jit.target));
  if (jit.cache != kUnset) add(jit.cache == 1 ? "cache l2" : "cache l1_and_l2");
  if (jit.registers != kUnset) add("at most " + std::to_string(jit.registers) + " registers");
  return text;
}

std::string ScopeText(const rules::Rule& rule) {
  std::string text;
  if (!rule.module.empty()) text += " modules " + Printable(rule.module);
  if (!rule.kernel.empty()) text += " kernels " + Printable(rule.kernel);
  return text.empty() ? "" : " (" + text.substr(1) + ")";
}

// What it does: of what kind, in words.
std::vector<std::pair<std::string, std::string>> EffectsOf(const rules::Rule& rule) {
  std::vector<std::pair<std::string, std::string>> effects;
  auto add = [&effects](const std::string& what, const std::string& words) {
    if (!words.empty()) effects.emplace_back(what, words);
  };
  add("launch", LaunchText(rule.launch));
  add("jit", JitText(rule.jit));
  std::string denied;
  for (const std::string& call : rule.deny) denied += (denied.empty() ? "" : ", ") + call;
  add("deny", denied);
  if (rule.validate) add("validate", "addresses are checked");
  if (rule.retry.count != 0) {
    add("retry", std::to_string(rule.retry.count) + " times, first after " +
                     std::to_string(rule.retry.back_off_milliseconds) + " ms");
  }
  return effects;
}

std::string RuleText(const rules::Rule& rule) {
  std::string text = "  rule " + rule.name + ScopeText(rule) + "\n";
  for (const auto& [what, words] : EffectsOf(rule)) text += "    " + what + ": " + words + "\n";
  return text;
}

std::string RuleJson(const rules::Rule& rule) {
  JsonObject object;
  object.Add("rule", rule.name).Add("module", rule.module).Add("kernel", rule.kernel);
  for (const auto& [what, words] : EffectsOf(rule)) object.Add(what, words);
  return object.Text();
}

bool IsAbout(const rules::Rule& rule, const RulesQuestion& question) {
  auto fits = [](const std::string& pattern, const std::string& name) {
    return name.empty() || pattern.empty() || rules::Matches(pattern, name);
  };
  return fits(rule.module, question.module) && fits(rule.kernel, question.kernel);
}

std::vector<rules::Rule> Applying(const config::Config& config, const std::string& tenant,
                                  const RulesQuestion& question) {
  std::vector<rules::Rule> applying;
  for (const rules::Rule& rule : rules::RulesOf(config, tenant, question.program).rules) {
    if (IsAbout(rule, question)) applying.push_back(rule);
  }
  return applying;
}

// Where no tenant is listed there is this one.
constexpr const char* kOnlyTenant = "default";

}  // namespace

bool HasTenant(const config::Config& config, const std::string& tenant) {
  if (config.tenants_size() == 0) return tenant == kOnlyTenant;
  return std::ranges::any_of(config.tenants(),
                             [&](const auto& listed) { return listed.name() == tenant; });
}

namespace {

std::vector<std::string> TenantsOf(const config::Config& config, const RulesQuestion& question) {
  if (!question.tenant.empty()) return {question.tenant};
  std::vector<std::string> tenants;
  for (const config::Tenant& tenant : config.tenants()) tenants.push_back(tenant.name());
  if (tenants.empty()) tenants.emplace_back(kOnlyTenant);
  return tenants;
}

}  // namespace

std::string ExplainRules(const config::Config& config, const RulesQuestion& question) {
  std::string text;
  for (const std::string& tenant : TenantsOf(config, question)) {
    std::string of_tenant;
    for (const rules::Rule& rule : Applying(config, tenant, question)) of_tenant += RuleText(rule);
    text += "tenant " + tenant + ":\n" + (of_tenant.empty() ? "  no rule applies\n" : of_tenant);
  }
  return text;
}

std::string ExplainRulesJson(const config::Config& config, const RulesQuestion& question) {
  std::string list;
  for (const std::string& tenant : TenantsOf(config, question)) {
    std::string of_tenant;
    for (const rules::Rule& rule : Applying(config, tenant, question)) {
      of_tenant += (of_tenant.empty() ? "" : ",") + RuleJson(rule);
    }
    JsonObject object;
    object.Add("tenant", tenant).AddValue("rules", "[" + of_tenant + "]");
    list += (list.empty() ? "" : ",") + object.Text();
  }
  return "{\"tenants\":[" + list + "]}\n";
}

namespace {

struct Used {
  rules::Rule rule;
  uint64_t launches = 0;
  uint64_t calls = 0;
};

// Of a server of another version that sends what is not understood, none.
std::vector<Used> RunningOf(const transport::RulesInForce& in_force,
                            const RulesQuestion& question) {
  rules::RuleList list;
  std::vector<Used> running;
  if (message::Unpack(std::as_bytes(std::span(in_force.rules())), &list) != wire::WireResult::kOk) {
    return running;
  }
  for (const rules::Rule& rule : list.rules) {
    if (!IsAbout(rule, question)) continue;
    Used& used = running.emplace_back(Used{rule});
    for (const transport::RuleFigures& figures : in_force.figures()) {
      if (figures.name() != rule.name) continue;
      used.launches = figures.launches();
      used.calls = figures.calls();
    }
  }
  return running;
}

}  // namespace

std::string ExplainRunning(const transport::InspectReply& reply, const RulesQuestion& question) {
  std::string text;
  for (const transport::RulesInForce& in_force : reply.rules()) {
    if (!question.tenant.empty() && in_force.tenant() != question.tenant) continue;
    std::string of_tenant;
    for (const Used& used : RunningOf(in_force, question)) {
      of_tenant += RuleText(used.rule) + "    used for: " + std::to_string(used.launches) +
                   " launches, " + std::to_string(used.calls) + " modules and other calls\n";
    }
    text += "tenant " + Printable(in_force.tenant()) + ":\n" +
            (of_tenant.empty() ? "  no rule applies\n" : of_tenant);
  }
  return text;
}

std::string ExplainRunningJson(const transport::InspectReply& reply,
                               const RulesQuestion& question) {
  std::string list;
  for (const transport::RulesInForce& in_force : reply.rules()) {
    if (!question.tenant.empty() && in_force.tenant() != question.tenant) continue;
    std::string of_tenant;
    for (const Used& used : RunningOf(in_force, question)) {
      JsonObject counts;
      counts.Add("launches", used.launches).Add("calls", used.calls);
      std::string rule = RuleJson(used.rule);
      rule.back() = ',';
      of_tenant += (of_tenant.empty() ? "" : ",") + rule + "\"used\":" + counts.Text() + "}";
    }
    JsonObject object;
    object.Add("tenant", in_force.tenant()).AddValue("rules", "[" + of_tenant + "]");
    list += (list.empty() ? "" : ",") + object.Text();
  }
  return "{\"tenants\":[" + list + "]}\n";
}

}  // namespace longwire::cli
