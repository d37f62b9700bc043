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
  uint32_t type = 0;  // LW_ARRAY, LW_HASH
  uint32_t entries = 0;
};

struct Object {
  std::vector<HookCode> hooks;
  std::vector<MapShape> maps;  // a reference to one is its index here, as an immediate
};

// None with a sentence.
std::optional<Object> ReadObject(std::span<const std::byte> file, std::string* sentence);

}  // namespace longwire::policy
