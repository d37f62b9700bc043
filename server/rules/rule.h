// One rule as it is sent from the daemon to a worker: what the operator wrote, of one tenant and
// program. No answer. A worker of an earlier release ignores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::rules {

// Of one tenant, the global ones included: of their largest size, they fit into one packet.
inline constexpr size_t kMaxRules = 128;

inline constexpr uint32_t kUnset = UINT32_MAX;

struct LaunchChange {
  uint32_t priority = kUnset;       // 0: the device's lowest
  uint32_t shared_memory = kUnset;  // percent of the most
  uint32_t clusters = kUnset;       // CUclusterSchedulingPolicy
  uint32_t grid[3] = {};            // 0: as the program says
  uint32_t block[3] = {};

  auto Fields() {
    return std::tie(priority, shared_memory, clusters, grid[0], grid[1], grid[2], block[0],
                    block[1], block[2]);
  }
  bool operator==(const LaunchChange&) const = default;
};

struct JitChange {
  uint32_t optimization = kUnset;
  uint32_t target = kUnset;
  uint32_t cache = kUnset;  // CUjit_cacheMode
  uint32_t registers = kUnset;

  auto Fields() { return std::tie(optimization, target, cache, registers); }
  bool operator==(const JitChange&) const = default;
};

struct Retry {
  uint32_t count = 0;  // 0: none
  uint32_t back_off_milliseconds = 0;

  auto Fields() { return std::tie(count, back_off_milliseconds); }
  bool operator==(const Retry&) const = default;
};

struct Rule {
  std::string name;    // for people
  std::string module;  // patterns; empty: all
  std::string kernel;
  LaunchChange launch;
  JitChange jit;
  std::vector<std::string> deny;  // names of server/rules/calls.h
  bool validate = false;
  Retry retry;

  auto Fields() { return std::tie(name, module, kernel, launch, jit, deny, validate, retry); }
};

struct RuleList {
  static constexpr uint32_t kKind = 131;
  std::vector<Rule> rules;
  auto Fields() { return std::tie(rules); }
};

// From a worker to the daemon: something for the log, such as a call that a rule has denied.
struct Notice {
  static constexpr uint32_t kKind = 132;
  std::string sentence;
  auto Fields() { return std::tie(sentence); }
};

}  // namespace longwire::rules
