#include "probe/constants.h"

#include "probe/arithmetic.h"

namespace longwire::probe {

namespace {

constexpr uint8_t kJump = 0x05, kExit = 0x95, kAlways = 0x05;
constexpr uint8_t kMoveConstant = 0xb7, kMoveRegister = 0xbf;

bool IsJump(const policy::Instruction& instruction) {
  return (instruction.code & 0x07) == kJump && instruction.code != policy::kCall &&
         instruction.code != kExit;
}

uint32_t TargetOf(const policy::Instruction& instruction, uint32_t at) {
  return at + 1 + static_cast<uint32_t>(instruction.offset);
}

}  // namespace

Constants::Constants(const policy::HookCode& code) : code_(code) {
  for (uint32_t i = 0; i < code.instructions.size(); ++i) {
    const policy::Instruction& instruction = code.instructions[i];
    if (IsJump(instruction)) targets_.insert(TargetOf(instruction, i));
    if (instruction.code == policy::kLoadWide) ++i;
  }
}

void Constants::Join(Known* known, const Known& other) {
  for (size_t i = 0; i < known->size(); ++i) {
    if ((*known)[i] != other[i]) (*known)[i].reset();
  }
}

void Constants::Reach(uint32_t at) {
  const auto found = waiting_.find(at);
  if (found == waiting_.end()) return;
  if (goes_on_) {
    Join(&known_, found->second);
  } else {
    known_ = found->second;
  }
  waiting_.erase(found);
  goes_on_ = true;
}

void Constants::Pass(uint32_t to) {
  const auto [found, is_new] = waiting_.emplace(to, known_);
  if (!is_new) Join(&found->second, known_);
}

void Constants::Step(uint32_t at) {
  const policy::Instruction& instruction = code_.instructions[at];
  const unsigned target = instruction.registers & 0x0f, source = instruction.registers >> 4;
  const uint8_t kind = instruction.code & 0x07;
  if (IsJump(instruction)) Pass(TargetOf(instruction, at));
  goes_on_ = instruction.code != kExit && instruction.code != kAlways;
  if (instruction.code == policy::kCall) {
    for (unsigned i = 0; i < 6; ++i) known_[i].reset();
  } else if (instruction.code == policy::kLoadWide) {
    known_[target] = WideConstant(code_, at);
  } else if (instruction.code == kMoveConstant) {
    known_[target] = static_cast<uint64_t>(int64_t{instruction.immediate});
  } else if (instruction.code == kMoveRegister) {
    known_[target] = known_[source];
  } else if (kind == 0x01 || kind == 0x07) {  // a load, or arithmetic
    known_[target].reset();
  }
}

}  // namespace longwire::probe
