#include "policy/program.h"

#include <algorithm>
#include <utility>

#include "policy/access.h"
#include "wire/guards.h"

namespace longwire::policy {

namespace {

// The maps of the policy that runs on this thread, for its helpers.
thread_local Maps* current = nullptr;

// librte_bpf's machine code calls helpers with a stack that is aligned to 8 bytes only; what the
// compiler makes of them may need 16, and crash.
#define LONGWIRE_HELPER [[gnu::force_align_arg_pointer]] uint64_t

LONGWIRE_HELPER MapGet(uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t) {
  const Map* at = current->At(map);
  return at == nullptr ? 0 : at->Get(key).value_or(0);
}

LONGWIRE_HELPER MapSet(uint64_t map, uint64_t key, uint64_t value, uint64_t, uint64_t) {
  Map* at = current->At(map);
  return at != nullptr && at->Set(key, value) ? 1 : 0;
}

LONGWIRE_HELPER MapAdd(uint64_t map, uint64_t key, uint64_t value, uint64_t, uint64_t) {
  Map* at = current->At(map);
  return at == nullptr ? 0 : at->Add(key, value).value_or(0);
}

constexpr HelperShape kHelpers[] = {
    {"lw_map_get", MapGet, 2}, {"lw_map_set", MapSet, 3}, {"lw_map_add", MapAdd, 3}};

// A bound for what a hook takes by itself, whatever path it goes: it has no loops. Interpreted, and
// with a division, an instruction takes this long; a helper on a hash that is not in the cache.
// With less than kLongestRun by this count, only a thread that was interrupted takes longer.
constexpr uint64_t kLongestInstruction = 20;  // ns
constexpr uint64_t kLongestHelper = 400;      // ns

bool MayBeSlow(const HookCode& code) {
  return code.instructions.size() * kLongestInstruction + code.helpers.size() * kLongestHelper >
         kLongestRun;
}

}  // namespace

std::shared_ptr<Program> Program::Load(const std::string& name, std::span<const std::byte> object,
                                       Engine& engine, std::string* sentence,
                                       wire::Descriptor memory) {
  auto read = ReadObject(object, sentence);
  if (!read) return nullptr;
  const size_t words = Maps::WordsOf(read->maps);
  auto store = memory.valid() ? Store::Map(std::move(memory), words, sentence)
                              : Store::Create(words, sentence);
  if (store == nullptr) return nullptr;
  std::shared_ptr<Program> program(new Program(name, read->maps, std::move(store)));
  for (const HookCode& code : read->hooks) {
    size_t hook = 0;
    while (hook < kHookCount && kHooks[hook].name != code.hook) ++hook;
    if (hook == kHookCount) {
      *sentence = code.Place(0) + ": there is no hook '" + code.hook +
                  "'; longwire/policy.h has those that there are";
      return nullptr;
    }
    Code& place = program->codes_[hook];
    if (place.compiled != nullptr) {
      *sentence = code.Place(0) + ": the policy has the hook '" + code.hook + "' twice";
      return nullptr;
    }
    if (!CheckAccess(code, kHooks[hook].context_bytes, sentence)) return nullptr;
    place.compiled = engine.Compile(code, kHooks[hook].context_bytes, kHelpers, sentence);
    if (place.compiled == nullptr) return nullptr;
    place.function = place.compiled->function();
    place.name = code.function;
    place.may_be_slow = MayBeSlow(code);
    if (!place.may_be_slow && code.helpers.empty()) place.alone = place.function;
  }
  return program;
}

uint64_t Program::RunWatched(const Code& code, uint64_t run, void* context) {
  Maps* outer = std::exchange(current, &maps_);
  uint64_t result = LW_NO_OPINION;
  if (!code.may_be_slow && run % kMeasuredRuns != 0) {
    result = Call(code, context);
  } else if (code.may_be_slow && watch_.suspects()) {
    result = RunSuspected(code, context);
  } else {
    const uint64_t begin = Watch::Counter();
    result = Call(code, context);
    const uint64_t end = Watch::Counter();
    NoteTicks(end - begin);
    if (code.may_be_slow && end - begin > watch_.limit()) watch_.Suspect(run, end);
  }
  current = outer;
  return result;
}

// What an interrupt takes may count as this thread's: so the time that passed has to be long, too,
// and that is measured close to the hook, where there is hardly ever one.
uint64_t Program::RunSuspected(const Code& code, void* context) {
  const uint64_t processor = Watch::ProcessorTime();
  const uint64_t begin = Watch::Counter();
  const uint64_t result = Call(code, context);
  const uint64_t ticks = Watch::Counter() - begin;
  const uint64_t used = Watch::ProcessorTime() - processor;
  NoteTicks(ticks);
  const uint64_t passed = std::min(used, Watch::Nanoseconds(ticks));
  if (!watch_.IsTooMuch(passed, runs(), Watch::Counter()) || wire::GuardIsOff("policy_time")) {
    return result;
  }
  End("its function " + code.name + " takes " + std::to_string(passed / 1000) +
      " us, and was slow before; a hook has 10 us: make it do less");
  return LW_NO_OPINION;
}

void Program::Refuse(Hook hook, const std::string& why) {
  if (wire::GuardIsOff("policy_answer")) return;
  End("its function " + codes_[static_cast<size_t>(hook)].name + " answered nonsense: " + why);
}

uint64_t Program::longest() const { return Watch::Nanoseconds(store_->longest().load()); }

void Program::NoteTicks(uint64_t ticks) {
  std::atomic<uint64_t>& longest = store_->longest();
  if (ticks > longest.load(std::memory_order_relaxed)) longest = ticks;
}

void Program::End(const std::string& why) {
  if (!store_->End(why)) return;
  std::function<void(const std::string&)> on_end;
  {
    base::MutexLock lock(mutex_);
    on_end = on_end_;
  }
  if (on_end) on_end(why);
}

void Program::Retire() {
  set_on_end(nullptr);
  store_->End("it was unloaded, or replaced");
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

bool Program::IsAskedBy(Asker asker) const {
  for (size_t i = 0; i < kHookCount; ++i) {
    if (kHooks[i].asker == asker && codes_[i].compiled != nullptr) return true;
  }
  return false;
}

std::vector<std::string> Program::Hooks() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kHookCount; ++i) {
    if (codes_[i].compiled != nullptr) names.emplace_back(kHooks[i].name);
  }
  return names;
}

}  // namespace longwire::policy
