// What rules cost a launch: with rules, the look-up of what was decided for its function and the
// change of its attributes; without, the question whether there are any. Google Benchmark's table.
#include <benchmark/benchmark.h>

#include <memory>

#include "server/worker/code/function_rules.h"
#include "server/worker/code/loading.h"
#include "server/worker/code/session_rules.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {
namespace {

DriverTable Driver() {
  DriverTable table;
  table.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  };
  return table;
}

rules::Rule RuleFor(const char* kernel) {
  rules::Rule rule;
  rule.name = "it";
  rule.kernel = kernel;
  rule.launch.priority = 2;
  rule.launch.shared_memory = 50;
  return rule;
}

// As Do_lwLaunch does it, between the function's look-up and the driver.
void LaunchByRules(benchmark::State& state) {
  const DriverTable driver = Driver();
  SessionRules rules(-1);
  rules.Replace({{RuleFor("*attention*"), RuleFor("_Z3*")}});
  Function function;
  function.name = "_Z3AddPKfS0_Pfi";
  const std::span<const std::byte> given;
  for (auto _ : state) {
    if (!rules.any()) continue;
    const FunctionRules* found = RulesOf(driver, rules, function);
    bool pauses = rules.PausesNow(7);
    LaunchAttributes attributes;
    attributes.Set(given, false);
    for (const CUlaunchAttribute& attribute : found->attributes) attributes.Set(attribute);
    benchmark::DoNotOptimize(attributes);
    benchmark::DoNotOptimize(pauses);
  }
}
BENCHMARK(LaunchByRules);

// The comparison of the rules' version for each row of launches, which is all that plain ones pay.
void NoRules(benchmark::State& state) {
  SessionRules rules(-1);
  uint32_t version = rules.version();
  for (auto _ : state) {
    bool changed = rules.version() != version;
    benchmark::DoNotOptimize(changed);
  }
}
BENCHMARK(NoRules);

}  // namespace
}  // namespace longwire::worker

BENCHMARK_MAIN();
