// Commands of transcripts about swapping: add, use, runs, remove, victims, prefetch, at, set.
// docs/policies.md lists them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/testing/transcript.h"
#include "server/keeper/swap_advice/advised_swaps.h"

namespace longwire::keeper {

class SwapCommands {
 public:
  // Null: what is built in, alone.
  explicit SwapCommands(std::shared_ptr<policy::Program> program = nullptr);
  std::string Run(const scheduler::testing::Command& command);

 private:
  void Add(const scheduler::testing::Command& command);
  std::string Runs(const scheduler::testing::Command& command);
  std::string Choose(const scheduler::testing::Command& command);
  std::vector<Region> Among(const std::string& list) const;
  static std::string Text(std::span<const Region> regions);

  const std::shared_ptr<policy::Program> program_;
  int64_t now_ = 0;  // ns
  AdvisedSwaps policy_;
  std::map<uint64_t, Region> regions_;
};

}  // namespace longwire::keeper
