// Reads a policy's object file, as clang -target bpf makes it (ELF64, little endian): its hooks,
// its maps and the source line of each instruction. The file is untrusted: whatever is wrong with
// it is said in a sentence. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace longwire::policy {

inline constexpr size_t kMaxObjectBytes = 1 << 20;
inline constexpr size_t kMaxInstructions = 4096;
inline constexpr size_t kMaxMaps = 64;
inline constexpr uint32_t kMaxMapEntries = 65536;

// As the instruction set has it (RFC 9669).
struct Instruction {
  uint8_t code = 0;
  uint8_t registers = 0;  // destination in the lower half, source in the upper
  int16_t offset = 0;
  int32_t immediate = 0;
};
static_assert(sizeof(Instruction) == 8);
inline constexpr uint8_t kCall = 0x85;      // BPF_JMP | BPF_CALL
inline constexpr uint8_t kLoadWide = 0x18;  // BPF_LD | BPF_IMM | BPF_DW: two instructions

struct HookCode {
  std::string hook;      // the section's name behind "hook/"
  std::string function;  // as the source names it
  std::vector<Instruction> instructions;
  std::map<uint32_t, std::string> helpers;  // of the call at this instruction
  // Of the first instruction of each line: its line as "policy.c:12"; empty without -g.
  std::map<uint32_t, std::string> lines;

  // "on_open, line 12 of policy.c (instruction 3)".
  std::string Place(uint32_t instruction) const;
};

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
