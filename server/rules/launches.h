// What a worker asks the daemon about functions, while there is a policy for launches
// (docs/policies.md), over its control socket.
//
//   AskLaunches  daemon to worker: there is another policy, or none -> no answer
//   AskLaunch    worker to daemon, once for each function, or for each of its configurations
//                -> LaunchAnswer
//
// A worker of an earlier release ignores AskLaunches, so its functions are not asked about.
#pragma once

#include <compare>
#include <cstdint>
#include <tuple>

#include "server/protocol/message.h"
#include "server/rules/rule.h"

namespace longwire::launches {

struct AskLaunches {
  static constexpr uint32_t kKind = 133;
  uint64_t policy = 0;  // its number; 0: there is none
  auto Fields() { return std::tie(policy); }
};

struct Shape {
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t shared_bytes = 0;
  auto Fields() {
    return std::tie(grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes);
  }
  auto operator<=>(const Shape&) const = default;
};

struct AskLaunch {
  static constexpr uint32_t kKind = 134;
  uint64_t request = 0;
  uint64_t kernel = 0;  // the number of its name
  uint64_t module = 0;  // the first bytes of its image's digest; 0: not known
  uint32_t device = 0;  // as the session counts
  Shape shape;
  auto Fields() { return std::tie(request, kernel, module, device, shape); }
};

struct LaunchAnswer {
  static constexpr uint32_t kKind = 135;
  uint64_t request = 0;
  rules::LaunchChange change;  // its attributes only
  bool each = false;           // for launches of that shape; else for all of the function
  auto Fields() { return std::tie(request, change, each); }
};

}  // namespace longwire::launches
