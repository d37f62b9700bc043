// Commands of transcripts about launches: launch, set. docs/policies.md lists them.
#pragma once

#include <memory>
#include <string>

#include "policy/program.h"
#include "scheduler/testing/transcript.h"

namespace longwire::policy {

// set MAP KEY NUMBER, of the policy's maps.
void SetInMap(const scheduler::testing::Command& command, Program* program);

class LaunchCommands {
 public:
  // Null: there is no policy.
  explicit LaunchCommands(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  std::string Run(const scheduler::testing::Command& command);

 private:
  std::string Launch(const scheduler::testing::Command& command);

  const std::shared_ptr<Program> program_;
};

}  // namespace longwire::policy
