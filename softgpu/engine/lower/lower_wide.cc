// Values of 128 bits: a register of this kind is two of 64 bits side by side, the low half first.
#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/run/memory_flags.h"

namespace softgpu {
namespace {

constexpr uint64_t kWideBytes = 16;
constexpr OperandOffset kHalfBytes = kLanes * sizeof(uint64_t);

}  // namespace

// The operand's halves: of a register of 128 bits, or a vector of two of 64.
Lowering::Halves Lowering::WideHalves(const PtxOperand& operand, bool written) {
  if (operand.kind == PtxOperand::Kind::kVector && operand.elements.size() == 2) {
    const PtxOperand &low = operand.elements[0], &high = operand.elements[1];
    if (written) return {Destination(low, 'l'), Destination(high, 'l')};
    return {Source(low, 'l'), Source(high, 'l')};
  }
  bool wide =
      operand.kind == PtxOperand::Kind::kRegister && source_.registers[operand.reg] == Type::kB128;
  if (written && operand.kind == PtxOperand::Kind::kSink) {
    OperandOffset low = Temporary('l');
    return {low, Temporary('l')};
  }
  if (!wide) Reject("no register of 128 bits");
  OperandOffset low = registers_[operand.reg];
  return {low, low + kHalfBytes};
}

// mov.b128 a, {b, c}; mov.b128 {b, c}, a; mov.b128 a, b
void Lowering::LowerWideMov(const PtxInstruction& instruction) {
  Halves from = WideHalves(instruction.operands[1], false);
  Halves to = WideHalves(instruction.operands[0], true);
  for (size_t i = 0; i < to.size(); ++i) {
    Instruction& mov = Emit(Need("mov.b64"));
    mov.op[0] = to[i];
    mov.op[1] = from[i];
  }
}

// ld and st of one value.
void Lowering::LowerWideAccess(const PtxInstruction& instruction) {
  bool loads = instruction.opcode != "st";
  AccessTarget target = FindTarget(instruction, instruction.operands[loads ? 1 : 0], kWideBytes);
  if (!loads && target.place == ".param") Reject("store to a kernel parameter");
  Halves halves = WideHalves(instruction.operands[loads ? 0 : 1], loads);
  Instruction& access = Emit(Need((loads ? "ld" : "st") + target.place + ".u64"));
  access.op[0] = halves[0];
  access.op[1] = halves[1];
  access.op[4] = target.address;
  access.imm = target.offset;
  access.extra = 2;  // elements
}

// atom.exch and atom.cas: op has the low halves.
void Lowering::LowerWideAtomic(const PtxInstruction& instruction, std::string_view operation) {
  bool compares = operation == ".cas";
  if (instruction.opcode != "atom" || (!compares && operation != ".exch")) Reject();
  NeedOperands(instruction, compares ? 4 : 3);
  AccessTarget target = FindTarget(instruction, instruction.operands[1], kWideBytes);
  if (target.place == ".frame" || target.place == ".param") Reject("atomic on a local variable");
  OperandOffset old = WideHalves(instruction.operands[0], true)[0];
  OperandOffset first = WideHalves(instruction.operands[2], false)[0];
  OperandOffset second = compares ? WideHalves(instruction.operands[3], false)[0] : 0;
  Instruction& atomic = Emit(Need("atom" + target.place + std::string(operation) + ".b128"));
  atomic.op[0] = old;
  atomic.op[1] = first;
  atomic.op[2] = second;
  atomic.op[4] = target.address;
  atomic.imm = target.offset;
  atomic.extra = kAccessPolls;
}

}  // namespace softgpu
