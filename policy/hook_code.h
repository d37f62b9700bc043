// One hook of a policy: its instructions, and where they stand in the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace longwire::policy {

inline constexpr size_t kMaxInstructions = 4096;

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

}  // namespace longwire::policy
