#include <algorithm>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/run/memory_flags.h"

namespace softgpu {
namespace {

// "u32": how memory handlers name what they move; signedness matters only below 32 bits.
std::string AccessName(Type type, bool sign_matters) {
  bool sign = sign_matters && IsSigned(type) && TypeBytes(type) < 8;
  return (sign ? "s" : "u") + std::to_string(TypeBytes(type) * 8);
}

char AccessLetter(Type type) { return TypeBytes(type) == 8 ? 'l' : 'i'; }

bool Polls(const PtxInstruction& instruction) {
  return instruction.Has(".volatile") || instruction.Has(".relaxed") ||
         instruction.Has(".acquire") || instruction.Has(".mmio");
}

std::vector<PtxOperand> Elements(const PtxOperand& operand) {
  return operand.kind == PtxOperand::Kind::kVector ? operand.elements
                                                   : std::vector<PtxOperand>{operand};
}

}  // namespace

bool IsShared(const PtxInstruction& instruction) {
  return instruction.Has(".shared") || instruction.Has(".shared::cta") ||
         instruction.Has(".shared::cluster");
}

void Lowering::LowerMov(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  if (instruction.LastType() == Type::kB128) return LowerWideMov(instruction);
  const PtxOperand& to = instruction.operands[0];
  const PtxOperand& from = instruction.operands[1];
  if (to.kind == PtxOperand::Kind::kVector || from.kind == PtxOperand::Kind::kVector) {
    return LowerMovVector(instruction);
  }
  Type type = instruction.LastType();
  if (type == Type::kNone) Reject();
  char letter = LetterOf(type);
  OperandOffset source = Source(from, letter);
  Instruction& mov = Emit(nullptr);
  mov.run = Need(letter == 'p' ? "mov.pred" : TypeBytes(type) == 8 ? "mov.b64" : "mov.b32");
  mov.op[1] = source;
  OperandOffset destination = Destination(to, letter);
  mov.op[0] = destination;
}

// mov.b64 {a, b}, c; and mov.b32 c, {a, b}; and between vectors of the same kind.
void Lowering::LowerMovVector(const PtxInstruction& instruction) {
  const PtxOperand& to = instruction.operands[0];
  const PtxOperand& from = instruction.operands[1];
  bool pack = from.kind == PtxOperand::Kind::kVector;
  if (pack && to.kind == PtxOperand::Kind::kVector) Reject("vector to vector");
  const std::vector<PtxOperand>& parts = pack ? from.elements : to.elements;
  int bytes = TypeBytes(instruction.LastType());
  size_t count = parts.size();
  if (bytes > 8 || (count != 2 && count != 4) || bytes / static_cast<int>(count) < 1) Reject();
  std::string key = (pack ? "pack." : "unpack.") + std::to_string(count) + "x" +
                    std::to_string(bytes * 8 / static_cast<int>(count));
  char whole = bytes == 8 ? 'l' : 'i';
  OperandOffset op[7] = {};
  if (pack) {
    for (size_t i = 0; i < count; ++i) op[i + 1] = Source(parts[i], 'i');
    op[0] = Destination(to, whole);
  } else {
    op[0] = Source(from, whole);
    for (size_t i = 0; i < count; ++i) op[i + 1] = Destination(parts[i], 'i');
  }
  Instruction& mov = Emit(Need(key));
  std::copy(std::begin(op), std::end(op), mov.op);
}

Lowering::AccessTarget Lowering::FindTarget(const PtxInstruction& instruction,
                                            const PtxOperand& address, uint64_t bytes) {
  if (address.kind != PtxOperand::Kind::kAddress) {
    throw PtxError(instruction.line, "expected an address");
  }
  AccessTarget target;
  target.offset = static_cast<int64_t>(address.value);
  bool shared = IsShared(instruction);
  if (shared) target.place = ".shared";
  if (address.has_register) {
    PtxOperand reg;
    reg.kind = PtxOperand::Kind::kRegister;
    reg.reg = address.reg;
    target.address = Source(reg, shared ? 'i' : 'l');
    return target;
  }
  uint64_t parameter_offset = 0;
  if (const LocalSlot* slot = FindLocal(current_->scope, address.symbol)) {
    if (address.value > slot->bytes || bytes > slot->bytes - address.value) {
      throw PtxError(instruction.line, "access outside of " + std::string(address.symbol));
    }
    target.place = ".frame";
    target.offset += slot->offset;
  } else if (const Variable* v = FindKernelParameter(address.symbol, &parameter_offset)) {
    if (address.value > v->bytes || bytes > v->bytes - address.value) {
      throw PtxError(instruction.line, "access outside of " + std::string(address.symbol));
    }
    target.place = ".param";
    target.offset += static_cast<int64_t>(parameter_offset);
  } else if (address.symbol.empty()) {
    target.address = Constant(0, shared ? 'i' : 'l');
  } else {
    target.address = SourceSymbol(address.symbol, 0, shared ? 'i' : 'l');
  }
  return target;
}

void Lowering::LowerLoad(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  Type type = instruction.LastType();
  if (type == Type::kB128) return LowerWideAccess(instruction);
  if (type == Type::kNone || type == Type::kPred) Reject();
  std::vector<PtxOperand> elements = Elements(instruction.operands[0]);
  if (elements.size() > 4) Reject("vector of more than 4");
  uint64_t bytes = elements.size() * static_cast<uint64_t>(TypeBytes(type));
  AccessTarget target = FindTarget(instruction, instruction.operands[1], bytes);
  OperandOffset op[7] = {};
  for (size_t i = 0; i < elements.size(); ++i) {
    op[i] = Destination(elements[i], AccessLetter(type), IsSigned(type));
  }
  op[4] = target.address;
  Instruction& load = Emit(Need("ld" + target.place + "." + AccessName(type, true)));
  std::copy(std::begin(op), std::end(op), load.op);
  load.imm = target.offset;
  load.extra = static_cast<uint32_t>(elements.size()) | (Polls(instruction) ? kAccessPolls : 0);
}

void Lowering::LowerStore(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  Type type = instruction.LastType();
  if (type == Type::kB128) return LowerWideAccess(instruction);
  if (type == Type::kNone || type == Type::kPred) Reject();
  std::vector<PtxOperand> elements = Elements(instruction.operands[1]);
  if (elements.size() > 4) Reject("vector of more than 4");
  uint64_t bytes = elements.size() * static_cast<uint64_t>(TypeBytes(type));
  AccessTarget target = FindTarget(instruction, instruction.operands[0], bytes);
  if (target.place == ".param") Reject("store to a kernel parameter");
  OperandOffset op[7] = {};
  for (size_t i = 0; i < elements.size(); ++i) op[i] = Source(elements[i], LetterOf(type));
  op[4] = target.address;
  Instruction& store = Emit(Need("st" + target.place + "." + AccessName(type, false)));
  std::copy(std::begin(op), std::end(op), store.op);
  store.imm = target.offset;
  store.extra = static_cast<uint32_t>(elements.size());
  if (instruction.Has(".release")) store.extra |= kAccessFence;
  if (instruction.Has(".async")) LowerCompletion(instruction, 2, bytes);
}

// atom and red; red has no destination. Of a vector each element is atomic, not the whole.
void Lowering::LowerAtomic(const PtxInstruction& instruction) {
  bool returns = instruction.opcode == "atom";
  size_t first = returns ? 1 : 0;
  NeedOperands(instruction, first + 2);
  std::vector<PtxOperand> values = Elements(instruction.operands[first + 1]);
  std::vector<PtxOperand> results = Elements(instruction.operands[0]);
  if (returns && results.size() != values.size()) Reject("vectors of two sizes");
  PtxInstruction one = instruction;
  for (size_t i = 0; i < values.size(); ++i) {
    if (returns) one.operands[0] = results[i];
    one.operands[first + 1] = values[i];
    EmitAtomic(one, first);
    one.operands[first].value += static_cast<uint64_t>(TypeBytes(instruction.LastType()));
  }
  if (instruction.Has(".async")) {
    LowerCompletion(instruction, 2, static_cast<uint64_t>(TypeBytes(instruction.LastType())));
  }
}

void Lowering::EmitAtomic(const PtxInstruction& instruction, size_t first) {
  bool returns = first == 1;
  Type type = instruction.LastType();
  static constexpr std::string_view kOperations[] = {".add", ".min",  ".max", ".and", ".or",
                                                     ".xor", ".exch", ".cas", ".inc", ".dec"};
  std::string_view operation;
  for (std::string_view name : kOperations) {
    if (instruction.Has(name)) operation = name;
  }
  if (operation.empty() || type == Type::kNone) Reject();
  if (type == Type::kB128) return LowerWideAtomic(instruction, operation);
  size_t sources = operation == ".cas" ? 2 : 1;
  NeedOperands(instruction, first + 1 + sources);
  char letter = LetterOf(type);
  AccessTarget target =
      FindTarget(instruction, instruction.operands[first], static_cast<uint64_t>(TypeBytes(type)));
  if (target.place == ".frame" || target.place == ".param") Reject("atomic on a local variable");
  OperandOffset op[7] = {};
  for (size_t i = 0; i < sources; ++i) {
    op[i + 1] = Source(instruction.operands[first + 1 + i], letter);
  }
  op[0] = returns ? Destination(instruction.operands[0], letter) : Temporary(letter);
  op[4] = target.address;
  std::string suffix(instruction.modifiers.back());
  Type unsigned_type = type;
  if (operation != ".min" && operation != ".max" && !IsFloat(type) && type != Type::kF16x2 &&
      type != Type::kBF16x2) {
    suffix = ".b" + std::to_string(TypeBytes(unsigned_type) * 8);
  }
  Instruction& atomic = Emit(Need("atom" + target.place + std::string(operation) + suffix));
  std::copy(std::begin(op), std::end(op), atomic.op);
  atomic.imm = target.offset;
  if (operation == ".cas" || operation == ".exch") atomic.extra = kAccessPolls;
}

// Generic, global, constant and local addresses are all host addresses; only those of shared
// memory differ.
void Lowering::LowerCvta(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  OperandOffset source = Source(instruction.operands[1], 'l');
  OperandOffset to = Destination(instruction.operands[0], 'l');
  const char* key = !IsShared(instruction)   ? "mov.b64"
                    : instruction.Has(".to") ? "cvta.to.shared"
                                             : "cvta.shared";
  Instruction& mov = Emit(Need(key));
  mov.op[0] = to;
  mov.op[1] = source;
}

void Lowering::LowerIsspacep(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  OperandOffset source = Source(instruction.operands[1], 'l');
  OperandOffset to = Destination(instruction.operands[0], 'p');
  const char* key = instruction.Has(".shared::cluster") ? "isspacep.cluster"
                    : IsShared(instruction)             ? "isspacep.shared"
                    : instruction.Has(".local")         ? "isspacep.local"
                    : instruction.Has(".global")        ? "isspacep.global"
                                                        : "isspacep.none";
  Instruction& test = Emit(Need(key));
  test.op[0] = to;
  test.op[1] = source;
}

void Lowering::LowerPrefetch(const PtxInstruction&) {}

// createpolicy: a hint for caches, which nothing here looks at.
void Lowering::LowerPolicy(const PtxInstruction& instruction) {
  NeedOperands(instruction, 1);
  OperandOffset none = Constant(0, 'l');
  OperandOffset to = Destination(instruction.operands[0], 'l');
  Instruction& mov = Emit(Need("mov.b64"));
  mov.op[0] = to;
  mov.op[1] = none;
}

}  // namespace softgpu
