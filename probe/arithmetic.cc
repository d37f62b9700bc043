#include "probe/arithmetic.h"

namespace longwire::probe {

namespace {

constexpr uint8_t kByRegister = 0x08;
// Operations of the 64-bit class (RFC 9669).
enum Operation : uint8_t {
  kAdd = 0x00,
  kSub = 0x10,
  kMultiply = 0x20,
  kDivide = 0x30,
  kOr = 0x40,
  kAnd = 0x50,
  kShiftLeft = 0x60,
  kShiftRight = 0x70,
  kNegate = 0x80,
  kModulo = 0x90,
  kXor = 0xa0,
  kMove = 0xb0,
  kShiftSigned = 0xc0,
};

// Both answers to a division by zero are the instruction set's: 0, and the dividend.
std::string DivisionText(uint8_t operation, const std::string& target, const std::string& by) {
  const bool divides = operation == kDivide;
  return "mov.b64 %longwire_t1, " + by +
         ";\nsetp.eq.u64 %longwire_p1, %longwire_t1, 0;\n"
         "selp.b64 %longwire_t1, 1, %longwire_t1, %longwire_p1;\n" +
         (divides ? "div.u64" : "rem.u64") + " %longwire_t0, " + target +
         ", %longwire_t1;\nselp.b64 " + target + ", " + (divides ? "0" : target) +
         ", %longwire_t0, %longwire_p1;\n";
}

// PTX shifts all bits out where the instruction set takes the number modulo 64.
std::string ShiftText(const std::string& name, const std::string& target, const std::string& by) {
  return "mov.b64 %longwire_t1, " + by +
         ";\ncvt.u32.u64 %longwire_w0, %longwire_t1;\nand.b32 %longwire_w0, %longwire_w0, 63;\n" +
         name + " " + target + ", " + target + ", %longwire_w0;\n";
}

std::string PlainText(const std::string& name, const std::string& target, const std::string& by) {
  return name + " " + target + ", " + target + ", " + by + ";\n";
}

}  // namespace

std::string RegisterName(unsigned number) { return "%longwire_r" + std::to_string(number); }

uint64_t WideConstant(const policy::HookCode& code, uint32_t at) {
  const auto low = static_cast<uint32_t>(code.instructions[at].immediate);
  const auto high = static_cast<uint32_t>(code.instructions[at + 1].immediate);
  return uint64_t{high} << 32 | low;
}

bool ArithmeticText(const policy::Instruction& instruction, std::string* text) {
  const std::string target = RegisterName(instruction.registers & 0x0f);
  const bool by_register = (instruction.code & kByRegister) != 0;
  const std::string by = by_register ? RegisterName(instruction.registers >> 4)
                                     : std::to_string(instruction.immediate);
  const uint8_t operation = instruction.code & 0xf0;
  if (instruction.offset != 0) return false;  // forms of later versions
  switch (operation) {
    case kAdd:
      *text += PlainText("add.u64", target, by);
      return true;
    case kSub:
      *text += PlainText("sub.u64", target, by);
      return true;
    case kMultiply:
      *text += PlainText("mul.lo.u64", target, by);
      return true;
    case kOr:
      *text += PlainText("or.b64", target, by);
      return true;
    case kAnd:
      *text += PlainText("and.b64", target, by);
      return true;
    case kXor:
      *text += PlainText("xor.b64", target, by);
      return true;
    case kDivide:
    case kModulo:
      *text += DivisionText(operation, target, by);
      return true;
    case kShiftLeft:
      *text += ShiftText("shl.b64", target, by);
      return true;
    case kShiftRight:
      *text += ShiftText("shr.u64", target, by);
      return true;
    case kShiftSigned:
      *text += ShiftText("shr.s64", target, by);
      return true;
    case kNegate:
      *text += "neg.s64 " + target + ", " + target + ";\n";
      return true;
    case kMove:
      *text += "mov.b64 " + target + ", " + by + ";\n";
      return true;
    default:
      return false;
  }
}

bool JumpText(const policy::Instruction& instruction, const std::string& label, std::string* text) {
  // By the upper half of the code; 0x40, by bits, is below.
  constexpr const char* kConditions[16] = {
      nullptr, "eq.u64", "gt.u64", "ge.u64", nullptr,  "ne.u64", "gt.s64", "ge.s64",
      nullptr, nullptr,  "lt.u64", "le.u64", "lt.s64", "le.s64", nullptr,  nullptr};
  const std::string target = RegisterName(instruction.registers & 0x0f);
  const std::string by = (instruction.code & kByRegister) != 0
                             ? RegisterName(instruction.registers >> 4)
                             : std::to_string(instruction.immediate);
  const uint8_t condition = instruction.code >> 4;
  if (condition == 4) {
    *text += "and.b64 %longwire_t0, " + target + ", " + by +
             ";\nsetp.ne.u64 %longwire_p1, %longwire_t0, 0;\n";
  } else if (kConditions[condition] != nullptr) {
    *text += std::string("setp.") + kConditions[condition] + " %longwire_p1, " + target + ", " +
             by + ";\n";
  } else {
    return false;
  }
  *text += "@%longwire_p1 bra " + label + ";\n";
  return true;
}

}  // namespace longwire::probe
