// A loaded policy: its compiled hooks and its maps, under watch. A hook that is slow too often
// (watch.h), or whose answer is refused, ends the policy: from then on no hook of it runs.
// Thread-safe.
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
#include "policy/watch.h"

namespace longwire::policy {

// Of the runs of hooks that cannot be slow one in this number is measured, for people.
inline constexpr uint64_t kMeasuredRuns = 64;

class Program {
 public:
  // Reads, verifies and compiles; null with a sentence.
  static std::shared_ptr<Program> Load(const std::string& name, std::span<const std::byte> object,
                                       Engine& engine, std::string* sentence);

  // True: the hook has answered, in the context. False: there is no such hook, it has no opinion,
  // or the policy has ended.
  template <class Context>
  bool Ask(Hook hook, Context* context) {
    const Code& code = codes_[static_cast<size_t>(hook)];
    return code.compiled != nullptr && !ended() && Run(code, context) == LW_ANSWERED;
  }
  bool Has(Hook hook) const { return codes_[static_cast<size_t>(hook)].compiled != nullptr; }

  // Ends it because of an answer that cannot be.
  void Refuse(Hook hook, const std::string& why);
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  std::string why_ended() const;  // a sentence; empty while it runs
  // Called once, on the thread that finds it out.
  void set_on_end(std::function<void(const std::string& why)> on_end);

  const std::string& name() const { return name_; }
  Maps& maps() { return maps_; }
  bool is_compiled() const;  // to machine code; else interpreted
  std::vector<std::string> Hooks() const;
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  uint64_t longest() const;  // ns, as it passed

 private:
  struct Code {
    std::unique_ptr<CompiledHook> compiled;
    MachineCode function = nullptr;
    std::string name;  // of the function in the source
    bool may_be_slow = false;
    MachineCode alone = nullptr;  // if it can neither be slow nor calls a helper
  };

  Program(std::string name, const std::vector<MapShape>& maps)
      : name_(std::move(name)), maps_(maps) {}
  uint64_t Run(const Code& code, void* context) {
    const uint64_t run = runs_.load(std::memory_order_relaxed);
    runs_.store(run + 1, std::memory_order_relaxed);  // what two threads count at once is one
    if (code.alone != nullptr && run % kMeasuredRuns != 0) return code.alone(context);
    return RunWatched(code, run, context);
  }
  uint64_t RunWatched(const Code& code, uint64_t run, void* context);
  static uint64_t Call(const Code& code, void* context) {
    return code.function != nullptr ? code.function(context) : code.compiled->Run(context);
  }
  uint64_t RunSuspected(const Code& code, void* context);
  void End(const std::string& why);

  const std::string name_;
  Maps maps_;
  std::array<Code, kHookCount> codes_;
  std::atomic<uint64_t> runs_{0}, longest_{0};  // longest_: ticks
  Watch watch_;
  std::atomic<bool> ended_{false};
  mutable base::Mutex mutex_{base::ranks::kPolicyProgram};
  std::string why_ended_ LONGWIRE_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_end_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::policy
