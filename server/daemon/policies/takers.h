// Who else runs or asks a policy, and whether they have taken it: keepers run hooks of memory,
// workers ask about launches. Only then it is true that it decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/program.h"

namespace longwire::daemon {

// How long a command waits for them. A keeper loads the engine with its thirty libraries first, and
// may be asked only when it has nothing to do.
inline constexpr std::chrono::milliseconds kTakersPatience{5000};

struct KeeperOfDevice {
  int32_t device = 0;
  uint64_t number = 0;  // what it writes into the policy's store; 0: none runs now
};

struct Takers {
  // Nothing with a sentence if nobody knows. Asked again and again.
  std::function<std::optional<std::vector<KeeperOfDevice>>(std::string* sentence)> keepers;
  // Sessions whose workers have not taken the present policy for launches, or its end.
  std::function<std::vector<uint64_t>()> late_sessions;
};

// Waits until all have taken the program. False with a sentence if it has ended, also because a
// keeper did not take it in time: then it decides nowhere. True with a sentence that is not empty:
// it decides, but for what the sentence says.
bool AwaitTakers(policy::Program& program, const Takers& takers, std::chrono::milliseconds patience,
                 std::string* sentence);
// The same for one that was unloaded: the sentence says whose launches still go by what it said.
void AwaitLeavers(const policy::Program& program, const Takers& takers,
                  std::chrono::milliseconds patience, std::string* sentence);

}  // namespace longwire::daemon
