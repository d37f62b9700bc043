// Reads a policy's object file, as clang -target bpf makes it (ELF64, little endian): its hooks,
// its maps and the source line of each instruction. The file is untrusted: whatever is wrong with
// it is said in a sentence. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/hook_code.h"

namespace longwire::policy {

inline constexpr size_t kMaxObjectBytes = 1 << 20;
inline constexpr size_t kMaxMaps = 64;
inline constexpr uint32_t kMaxMapEntries = 65536;

struct MapShape {
  std::string name;
  uint32_t type = 0;  // LW_ARRAY, LW_HASH, or one of probes'
  uint32_t entries = 0;
};

struct Object {
  std::vector<HookCode> hooks;
  std::vector<MapShape> maps;  // a reference to one is its index here, as an immediate
};

// What is in the object: policies, or probes (probe/).
struct ObjectKind {
  const char* prefix;  // of the sections of functions
  std::span<const uint32_t> map_types;
  const char* map_advice;  // of what types a map may be
  const char* advice;      // how a function gets into its section
};
extern const ObjectKind kPolicies;

// None with a sentence.
std::optional<Object> ReadObject(std::span<const std::byte> file, std::string* sentence,
                                 const ObjectKind& kind = kPolicies);

}  // namespace longwire::policy
