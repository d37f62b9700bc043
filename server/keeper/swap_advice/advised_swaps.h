// What is built in for swapping, with an operator's policy beside it: that reorders what leaves,
// and says for how long memory that came back stays at least. The keeper has the last word: the
// policy chooses among what may leave, and where its order finds too little, the built-in one
// counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "policy/program.h"
#include "server/keeper/swap_policy.h"

namespace longwire::keeper {

class AdvisedSwaps final : public SwapPolicy {
 public:
  using Clock = std::function<int64_t()>;  // ns
  AdvisedSwaps(std::unique_ptr<SwapPolicy> built_in, uint32_t device, Clock clock = SteadyNow);

  // Null: none. It gets to know the regions that there are.
  void Use(std::shared_ptr<policy::Program> program);
  // Whose memory the worker's is.
  void SetOwner(uint64_t owner, uint64_t session, uint64_t tenant);
  void Forget(uint64_t owner) { owners_.erase(owner); }

  void Added(const Region& region) override;
  void Accessed(uint64_t owner) override;
  void Removed(uint64_t region) override;
  std::chrono::nanoseconds Runs(uint64_t owner, uint64_t away, const NextLaunches& next) override;
  std::vector<Region> Victims(uint64_t needed, uint64_t room,
                              std::span<const Region> movable) override;
  std::vector<Region> Prefetch(std::span<const Region> away) override;

 private:
  struct Owner {
    uint64_t session = 0;
    uint64_t tenant = 0;
    int64_t used = 0;
    size_t regions = 0;
    bool placed = false;  // it is known whose it is
  };

  static int64_t SteadyNow();
  bool Has(policy::Hook hook) const {
    return program_ != nullptr && program_->Has(hook) && !program_->ended();
  }
  lw_memory ContextOf(uint64_t owner) const;
  void Tell(policy::Hook hook, const Region& region);
  uint64_t ScoreOf(const Region& region);
  std::vector<Region> ByScore(uint64_t needed, uint64_t room, std::span<const Region> movable);

  const std::unique_ptr<SwapPolicy> built_in_;
  const uint32_t device_;
  const Clock clock_;
  std::shared_ptr<policy::Program> program_;
  std::unordered_map<uint64_t, Region> regions_;
  std::unordered_map<uint64_t, Owner> owners_;
};

}  // namespace longwire::keeper
