#include "policy/program.h"

#include <time.h>
#include <x86intrin.h>

#include <chrono>
#include <utility>

#include "wire/guards.h"

namespace longwire::policy {

namespace {

// A policy ends after this number of slow runs in a row, of which all but the first are measured in
// time of the processor: a thread that was interrupted is not a slow policy.
constexpr uint32_t kSlowRuns = 3;
// One run of this many is measured, and each while there is suspicion: reading the clock takes
// longer than most hooks, and no hook runs for ever, since it has no loops.
constexpr uint64_t kMeasuredRuns = 8;

// The maps of the policy that runs on this thread, for its helpers.
thread_local Maps* current = nullptr;

uint64_t MapGet(uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t) {
  const Map* at = current->At(map);
  return at == nullptr ? 0 : at->Get(key).value_or(0);
}

uint64_t MapSet(uint64_t map, uint64_t key, uint64_t value, uint64_t, uint64_t) {
  Map* at = current->At(map);
  return at != nullptr && at->Set(key, value) ? 1 : 0;
}

uint64_t MapAdd(uint64_t map, uint64_t key, uint64_t value, uint64_t, uint64_t) {
  Map* at = current->At(map);
  return at == nullptr ? 0 : at->Add(key, value).value_or(0);
}

constexpr HelperShape kHelpers[] = {
    {"lw_map_get", MapGet, 2}, {"lw_map_set", MapSet, 3}, {"lw_map_add", MapAdd, 3}};

// How many ticks of the processor's counter a nanosecond has; measured once, in 200 us.
double TicksPerNanosecond() {
  static const double ticks = [] {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t first = __rdtsc();
    auto now = begin;
    while (now - begin < std::chrono::microseconds(200)) now = std::chrono::steady_clock::now();
    return static_cast<double>(__rdtsc() - first) /
           static_cast<double>(std::chrono::nanoseconds(now - begin).count());
  }();
  return ticks;
}

uint64_t ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

std::shared_ptr<Program> Program::Load(const std::string& name, std::span<const std::byte> object,
                                       Engine& engine, std::string* sentence) {
  auto read = ReadObject(object, sentence);
  if (!read) return nullptr;
  std::shared_ptr<Program> program(new Program(name, read->maps));
  for (const HookCode& code : read->hooks) {
    size_t hook = 0;
    while (hook < kHookCount && kHooks[hook].name != code.hook) ++hook;
    if (hook == kHookCount) {
      *sentence = code.function + ": there is no hook '" + code.hook +
                  "'; longwire/policy.h has those that there are";
      return nullptr;
    }
    Code& place = program->codes_[hook];
    if (place.compiled != nullptr) {
      *sentence = code.function + ": the policy has the hook '" + code.hook + "' twice";
      return nullptr;
    }
    place.compiled = engine.Compile(code, kHooks[hook].context_bytes, kHelpers, sentence);
    if (place.compiled == nullptr) return nullptr;
    place.function = place.compiled->function();
    place.name = code.function;
  }
  TicksPerNanosecond();
  return program;
}

uint64_t Program::Run(Hook hook, void* context) {
  const Code& code = codes_[static_cast<size_t>(hook)];
  const uint64_t run = runs_.load(std::memory_order_relaxed);
  runs_.store(run + 1, std::memory_order_relaxed);  // a run that two threads count at once is one
  Maps* outer = std::exchange(current, &maps_);
  const bool measured = run % kMeasuredRuns == 0 || suspicion_.load(std::memory_order_relaxed) != 0;
  const uint64_t result = measured ? Measure(hook, context) : Call(code, context);
  current = outer;
  return result;
}

uint64_t Program::Measure(Hook hook, void* context) {
  const bool suspected = suspicion_.load() != 0;
  const uint64_t processor = suspected ? ProcessorTime() : 0;
  const uint64_t begin = __rdtsc();
  const uint64_t result = Call(codes_[static_cast<size_t>(hook)], context);
  const auto ticks = static_cast<double>(__rdtsc() - begin);
  const uint64_t passed =
      suspected ? ProcessorTime() - processor : static_cast<uint64_t>(ticks / TicksPerNanosecond());
  if (passed > longest_.load()) longest_.store(passed);
  if (suspected || passed > kLongestRun) Judge(hook, passed);
  return ended() ? LW_NO_OPINION : result;
}

void Program::Judge(Hook hook, uint64_t nanoseconds) {
  if (nanoseconds <= kLongestRun) return suspicion_.store(0);
  if (suspicion_.fetch_add(1) + 1 < kSlowRuns || wire::GuardIsOff("policy_time")) return;
  End("its function " + codes_[static_cast<size_t>(hook)].name + " takes " +
      std::to_string(nanoseconds / 1000) + " us; a hook has 10 us: make it do less");
}

void Program::Refuse(Hook hook, const std::string& why) {
  End("its function " + codes_[static_cast<size_t>(hook)].name + " answered nonsense: " + why);
}

void Program::End(const std::string& why) {
  if (ended_.exchange(true)) return;
  std::function<void(const std::string&)> on_end;
  {
    base::MutexLock lock(mutex_);
    why_ended_ = why;
    on_end = on_end_;
  }
  if (on_end) on_end(why);
}

std::string Program::why_ended() const {
  base::MutexLock lock(mutex_);
  return why_ended_;
}

void Program::set_on_end(std::function<void(const std::string& why)> on_end) {
  base::MutexLock lock(mutex_);
  on_end_ = std::move(on_end);
}

bool Program::is_compiled() const {
  for (const Code& code : codes_) {
    if (code.compiled != nullptr && code.function == nullptr) return false;
  }
  return true;
}

std::vector<std::string> Program::Hooks() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kHookCount; ++i) {
    if (codes_[i].compiled != nullptr) names.emplace_back(kHooks[i].name);
  }
  return names;
}

}  // namespace longwire::policy
