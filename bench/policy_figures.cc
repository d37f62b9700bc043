// A decision of the scheduler with a policy that is built in, and with the same one as eBPF: one
// session reports that it became busy, then idle, beside others (Google Benchmark).
#include <benchmark/benchmark.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "policy/advised.h"
#include "scheduler/core.h"

namespace longwire::policy {
namespace {

using scheduler::Activity;
using scheduler::ActivityReported;
using scheduler::Core;
using scheduler::PriorityClass;
using scheduler::Time;

std::shared_ptr<Program> Load(const std::string& name) {
  std::ifstream file(std::string(POLICY_OBJECTS) + "/" + name + ".o", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string sentence;
  Engine* engine = LoadEngine(&sentence, POLICY_ENGINE);
  auto program = engine == nullptr
                     ? nullptr
                     : Program::Load(name, std::as_bytes(std::span(text)), *engine, &sentence);
  if (program == nullptr) {
    std::cerr << "policy_figures: " << name << ": " << sentence << "\n";
    std::exit(1);
  }
  return program;
}

void Decide(benchmark::State& state, const std::string& name, bool as_program,
            bool with_turns = true) {
  auto policy = scheduler::MakePolicy(name);
  std::shared_ptr<Program> program;
  if (as_program) {
    program = Load(name);
    policy = MakeAdvised(std::move(policy), program);
  }
  Core core(*policy, {});
  for (uint64_t id = 1; id <= 6; ++id) {
    const auto priority = id <= 2 ? PriorityClass::kLatencyCritical : PriorityClass::kBestEffort;
    core.On(Time{0},
            scheduler::SessionOpened{{id, "t" + std::to_string(id), priority, 1, {0}, ""}});
  }
  // One of the best-effort sessions has a turn and the others wait; its gate closes and opens.
  for (uint64_t id = 3; id <= 6 && with_turns; ++id) {
    core.On(Time{0}, ActivityReported{id, 0, Activity::kQueued, Time{0}});
  }
  Time now{0}, used{0};
  bool busy = false;
  for (auto step : state) {
    now += std::chrono::microseconds(50);
    busy = !busy;
    benchmark::DoNotOptimize(
        core.On(now, ActivityReported{1, 0, busy ? Activity::kRunning : Activity::kIdle, used}));
  }
  if (program != nullptr && program->ended()) state.SkipWithError(program->why_ended().c_str());
}

// The hook alone: what a call of machine code costs, with its watch.
void RunHook(benchmark::State& state) {
  auto program = Load("favourite");
  lw_turn turn{};
  for (auto step : state) {
    benchmark::DoNotOptimize(program->Ask(Hook::kTurnNext, &turn));
  }
}

BENCHMARK_CAPTURE(Decide, strict_built_in, "strict_priority", false);
BENCHMARK_CAPTURE(Decide, strict_ebpf, "strict_priority", true);
BENCHMARK_CAPTURE(Decide, nobody_waits_built_in, "strict_priority", false, false);
BENCHMARK_CAPTURE(Decide, nobody_waits_ebpf, "strict_priority", true, false);
BENCHMARK_CAPTURE(Decide, fair_built_in, "weighted_fair", false);
BENCHMARK_CAPTURE(Decide, fair_ebpf, "weighted_fair", true);
BENCHMARK(RunHook);

}  // namespace
}  // namespace longwire::policy

BENCHMARK_MAIN();
