// A probe: one function of a probe object, verified and translated to PTX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/engine.h"
#include "policy/object.h"

namespace longwire::probe {

enum class Point : uint8_t {
  kKernelEntry,
  kKernelExit,
  kBlockEnter,
  kBlockExit,
  kFunctionEntry,
  kFunctionExit,
  kMemoryAccess,
  kFence,
};
inline constexpr std::string_view kPoints[] = {
    "kernel_entry",   "kernel_exit",   "block_enter",   "block_exit",
    "function_entry", "function_exit", "memory_access", "fence",
};

// Of a place in PTX where a probe is put in. Each is a number or an expression that stands in the
// translated text in braces.
inline constexpr char kSite[] = "{site}";      // a number of its own, for labels
inline constexpr char kKernel[] = "{kernel}";  // the hash of the function's name
inline constexpr char kBytes[] = "{bytes}";    // of one lane's access
inline constexpr char kAccess[] = "{access}";  // LW_LOAD, LW_STORE, LW_ATOMIC
inline constexpr char kLine[] = "{line}";      // of the PTX

struct Probe {
  Point point = Point::kKernelEntry;
  std::string text;  // a block of PTX in braces, but for what stands in braces above
  // What the function has to keep from its entry on.
  bool reads_began = false;
  bool reads_began_cycles = false;
  bool reads_address = false;
};

struct ProbeSet {
  std::vector<Probe> probes;
  std::vector<policy::MapShape> maps;
};

// Reads, checks and translates. `engine`: verifies as well; without one the object was verified
// before. None with a sentence that names function and line.
std::optional<ProbeSet> LoadProbes(std::span<const std::byte> object, policy::Engine* engine,
                                   std::string* sentence);

}  // namespace longwire::probe
