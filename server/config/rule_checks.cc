#include "server/config/rule_checks.h"

#include <algorithm>
#include <vector>

#include "server/config/schema.h"
#include "server/config/text.h"
#include "server/rules/calls.h"
#include "server/rules/pattern.h"
#include "server/rules/sizes.h"

namespace longwire::config {
namespace {

// Of a block: threads together, and of a grid in each direction.
constexpr uint64_t kMaxThreads = 1024;
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

std::vector<std::string> KnownCalls() {
  std::vector<std::string> names;
  for (const rules::DeniableCall& call : rules::DeniableCalls()) {
    if (names.empty() || names.back() != call.name) names.emplace_back(call.name);
  }
  return names;
}

void CheckDeny(const Rule& rule, const AddRuleProblem& add) {
  const std::vector<std::string> known = KnownCalls();
  for (int i = 0; i < rule.deny_size(); ++i) {
    const std::string key = "deny[" + std::to_string(i) + "]";
    if (!rules::IsDeniable(rule.deny(i))) {
      const std::string meant = Closest(rule.deny(i), known);
      add(key, "rules.deny: " + Quoted(rule.deny(i)) + " is no call that can be denied; " +
                   (meant.empty() ? "expected one of " + Alternatives(known)
                                  : "did you mean '" + meant + "'?"));
      continue;
    }
    const bool of_kernels = rule.deny(i) == rules::kLaunchKernel;
    const bool of_modules = of_kernels || rule.deny(i) == "cuModuleLoad";
    if ((rule.has_kernel() && !of_kernels) || (rule.has_module() && !of_modules)) {
      add(key,
          "rules.deny: a rule with module: can deny cuModuleLoad and cuLaunchKernel, one with "
          "kernel: cuLaunchKernel; write a rule of its own for " +
              Quoted(rule.deny(i)));
    }
  }
}

void CheckGrid(const std::string& text, const AddRuleProblem& add) {
  uint32_t sizes[3] = {};
  if (!rules::ParseSizes(text, sizes)) {
    return add("launch.grid", "rules.launch.grid: expected X, XxY or XxYxZ, found " + Quoted(text));
  }
  for (int i = 0; i < 3; ++i) {
    if (sizes[i] <= kMaxGrid[i]) continue;
    return add("launch.grid",
               "rules.launch.grid: expected at most 2147483647x65535x65535, found " + Quoted(text));
  }
}

void CheckBlock(const std::string& text, const AddRuleProblem& add) {
  uint32_t sizes[3] = {};
  if (!rules::ParseSizes(text, sizes)) {
    return add("launch.block",
               "rules.launch.block: expected X, XxY or XxYxZ, found " + Quoted(text));
  }
  uint64_t threads = 1;
  for (uint32_t size : sizes) threads = size > kMaxThreads ? kMaxThreads + 1 : threads * size;
  if (threads <= kMaxThreads) return;
  add("launch.block",
      "rules.launch.block: expected at most 1024 threads together, found " + Quoted(text));
}

// Another grid or block computes wrong values in any kernel with a tile of a fixed size.
void CheckLaunch(const Rule& rule, const AddRuleProblem& add) {
  const LaunchRule& launch = rule.launch();
  if (launch.has_grid()) CheckGrid(launch.grid(), add);
  if (launch.has_block()) CheckBlock(launch.block(), add);
  if (!launch.has_grid() && !launch.has_block()) return;
  const std::string key = launch.has_grid() ? "launch.grid" : "launch.block";
  if (!rules::IsExact(rule.kernel())) {
    add(key, "rules." + key + ": expected kernel: with the exact name of one kernel beside it, " +
                 (rule.has_kernel() ? "found the pattern " + Quoted(rule.kernel()) : "found none"));
  }
  if (launch.unsafe()) return;
  add(key, "rules." + key +
               ": expected unsafe: true beside it: most kernels compute wrong values with another "
               "grid or block");
}

// A pattern that fits nothing would be a rule that says nothing: a denial that denies nothing.
void CheckModule(const std::string& module, const AddRuleProblem& add) {
  constexpr size_t kDigits = 64;
  const size_t stars = static_cast<size_t>(std::ranges::count(module, '*'));
  const size_t digits = module.size() - stars;
  const bool fits = stars == 0 ? digits == kDigits : digits <= kDigits;
  if (fits && module.find_first_not_of("0123456789abcdef?*") == std::string::npos) return;
  add("module",
      "rules.module: expected the SHA-256 of an image, 64 hexadecimal digits in small letters, or "
      "the first of them and *, found " +
          Quoted(module));
}

void CheckKernel(const std::string& kernel, const AddRuleProblem& add) {
  if (kernel.find_first_of(" \t()<>:,&\"'") == std::string::npos) return;
  add("kernel",
      "rules.kernel: expected the name in the module, such as _Z3AddPii, which cuobjdump and nm "
      "show, found " +
          Quoted(kernel));
}

bool HasEffect(const Rule& rule) {
  const LaunchRule& launch = rule.launch();
  const JitRule& jit = rule.jit();
  return launch.has_priority() || launch.has_shared_memory() || launch.has_clusters() ||
         launch.has_grid() || launch.has_block() || jit.has_optimization() || jit.has_target() ||
         jit.has_cache() || jit.has_registers() || rule.deny_size() != 0 || rule.validate() ||
         rule.retry().count() != 0;
}

}  // namespace

void CheckRule(const Rule& rule, const AddRuleProblem& add) {
  if (rule.has_module()) CheckModule(rule.module(), add);
  if (rule.has_kernel()) CheckKernel(rule.kernel(), add);
  CheckDeny(rule, add);
  CheckLaunch(rule, add);
  if (rule.retry().has_back_off() && rule.retry().count() == 0) {
    add("retry", "rules.retry: expected a count of at least 1 beside back_off");
  }
  if (!HasEffect(rule)) {
    add("",
        "rules: this rule does nothing; expected launch, jit, deny, validate: true or retry "
        "with values");
  }
}

}  // namespace longwire::config
