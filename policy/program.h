// A loaded policy: its compiled hooks and its maps, under watch. A hook that is slow too often
// (watch.h), or whose answer is refused, ends the policy: from then on no hook of it runs, in this
// process and in others that have mapped its memory (store.h). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/engine.h"
#include "policy/hooks.h"
#include "policy/maps.h"
#include "policy/object.h"
#include "policy/store.h"
#include "policy/watch.h"

namespace longwire::policy {

// Of the runs of hooks that cannot be slow one in this number is measured, for people.
inline constexpr uint64_t kMeasuredRuns = 64;

class Program {
 public:
  // Reads, verifies and compiles; null with a sentence. `memory`: of the same policy in another
  // process (store().descriptor()); none: the maps are new.
  static std::shared_ptr<Program> Load(const std::string& name, std::span<const std::byte> object,
                                       Engine& engine, std::string* sentence,
                                       wire::Descriptor memory = {});

  // True: the hook has answered, in the context. False: there is no such hook, it has no opinion,
  // or the policy has ended.
  template <class Context>
  bool Ask(Hook hook, Context* context) {
    const Code& code = codes_[static_cast<size_t>(hook)];
    return code.compiled != nullptr && !ended() && Run(code, context) == LW_ANSWERED;
  }
  // Whether it has any of their hooks.
  bool IsAskedBy(Asker asker) const;
  bool Has(Hook hook) const { return codes_[static_cast<size_t>(hook)].compiled != nullptr; }

  // Ends it because it cannot run where it should; a sentence without its full stop.
  void End(const std::string& why);
  // Ends it because nobody wants it any more: that is no fault, and on_end is not called.
  void Retire();
  // Ends it because of an answer that cannot be.
  void Refuse(Hook hook, const std::string& why);
  bool ended() const { return store_->ended(); }
  std::string why_ended() const { return store_->why_ended(); }  // empty while it runs
  // Called once, on the thread that finds it out; not if that is another process.
  void set_on_end(std::function<void(const std::string& why)> on_end);

  const std::string& name() const { return name_; }
  Maps& maps() { return maps_; }
  bool is_compiled() const;  // to machine code; else interpreted
  std::vector<std::string> Hooks() const;
  uint64_t runs() const { return store_->runs().load(std::memory_order_relaxed); }
  uint64_t longest() const;  // ns, as it passed
  const Store& store() const { return *store_; }
  // As Store::Take.
  bool Take(uint32_t device, uint64_t keeper) { return store_->Take(device, keeper); }

 private:
  struct Code {
    std::unique_ptr<CompiledHook> compiled;
    MachineCode function = nullptr;
    std::string name;  // of the function in the source
    bool may_be_slow = false;
    MachineCode alone = nullptr;  // if it can neither be slow nor calls a helper
  };

  Program(std::string name, const std::vector<MapShape>& maps, std::shared_ptr<Store> store)
      : name_(std::move(name)), store_(std::move(store)), maps_(maps, store_->words()) {}
  uint64_t Run(const Code& code, void* context) {
    const uint64_t run = store_->runs().load(std::memory_order_relaxed);
    store_->runs().store(run + 1, std::memory_order_relaxed);
    if (code.alone != nullptr && run % kMeasuredRuns != 0) return code.alone(context);
    return RunWatched(code, run, context);
  }
  uint64_t RunWatched(const Code& code, uint64_t run, void* context);
  static uint64_t Call(const Code& code, void* context) {
    return code.function != nullptr ? code.function(context) : code.compiled->Run(context);
  }
  uint64_t RunSuspected(const Code& code, void* context);
  void NoteTicks(uint64_t ticks);

  const std::string name_;
  const std::shared_ptr<Store> store_;
  Maps maps_;
  std::array<Code, kHookCount> codes_;
  Watch watch_;
  base::Mutex mutex_{base::ranks::kPolicyProgram};
  std::function<void(const std::string&)> on_end_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::policy
