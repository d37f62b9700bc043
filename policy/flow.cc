#include "policy/flow.h"

#include <vector>

namespace longwire::policy {

namespace {

constexpr uint8_t kJump = 0x05;    // the class of 64-bit jumps
constexpr uint8_t kJump32 = 0x06;  // of 32-bit ones, which -mcpu=v2 does not have
constexpr uint8_t kAlways = 0x05;  // BPF_JMP | BPF_JA
constexpr uint8_t kExit = 0x95;    // BPF_JMP | BPF_EXIT

class Flow {
 public:
  Flow(const HookCode& code, std::string* sentence)
      : code_(code), size_(static_cast<uint32_t>(code.instructions.size())), sentence_(sentence) {}

  bool Check() {
    is_second_half_.resize(size_ + 1);
    for (uint32_t i = 0; i < size_; ++i) {
      if (code_.instructions[i].code != kLoadWide) continue;
      const Instruction* half = i + 1 == size_ ? nullptr : &code_.instructions[i + 1];
      if (half == nullptr || half->code != 0 || half->registers != 0 || half->offset != 0) {
        return Refuse(i, "half of a 64-bit constant is missing: compile it again with clang");
      }
      is_second_half_[++i] = true;
    }
    return FollowAll();
  }

 private:
  bool Refuse(uint32_t at, const std::string& what) {
    *sentence_ = code_.Place(at) + ": " + what;
    return false;
  }

  // All jumps go forward, so whatever leads to an instruction stands before it.
  bool FollowAll() {
    paths_.resize(size_ + 1);
    paths_[0] = 1;
    uint64_t visits = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      if (is_second_half_[i]) continue;
      if (paths_[i] == 0) {
        return Refuse(i, "it has instructions that are never reached: take them out");
      }
      visits += paths_[i];
      if (visits > kMaxVisits) {
        return Refuse(i,
                      "up to here there are too many paths, each of which is verified: use "
                      "fewer branches one behind the other");
      }
      if (!CheckKind(i) || !Follow(i)) return false;
    }
    return true;
  }

  // What the engine would take for something else.
  bool CheckKind(uint32_t i) {
    const Instruction& instruction = code_.instructions[i];
    if (instruction.code == kCall && !code_.helpers.contains(i)) {
      return Refuse(i, std::string("it calls a function by number: declare it as the header ") +
                           "does, and make functions of your own static inline");
    }
    if ((instruction.code & 0x07) == kJump32) {
      return Refuse(i, "jumps by 32-bit values are not known: compile with -mcpu=v2");
    }
    return true;
  }

  bool Follow(uint32_t i) {
    const Instruction& instruction = code_.instructions[i];
    if (instruction.code == kExit) return true;
    const bool jumps = (instruction.code & 0x07) == kJump && instruction.code != kCall;
    if (jumps && instruction.offset < 0) {
      return Refuse(i, "it has a loop, or jumps back: loops are not allowed, so unroll it");
    }
    if (jumps && !Reach(i, i + 1 + static_cast<uint32_t>(instruction.offset))) return false;
    if (instruction.code == kAlways) return true;
    return Reach(i, i + (instruction.code == kLoadWide ? 2 : 1));
  }

  bool Reach(uint32_t from, uint32_t to) {
    if (to >= size_ || is_second_half_[to]) {
      return Refuse(from, "it goes on outside of the function: compile it again with clang");
    }
    paths_[to] += paths_[from];
    return true;
  }

  const HookCode& code_;
  const uint32_t size_;
  std::string* const sentence_;
  std::vector<bool> is_second_half_;  // of a 64-bit constant
  std::vector<uint64_t> paths_;       // that lead to each instruction
};

}  // namespace

bool CheckFlow(const HookCode& code, std::string* sentence) { return Flow(code, sentence).Check(); }

}  // namespace longwire::policy
