#include "softgpu/engine/lower/lower.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/special.h"

namespace softgpu {
namespace {

constexpr uint32_t kMaxRegisterBytes = 16u << 20;  // of a warp
constexpr uint32_t kMaxLocalBytes = 512u << 10;    // of a lane: CUDA's own limit

bool IsWide(char letter) { return letter == 'l' || letter == 'd'; }

uint32_t Align(uint32_t value, uint64_t alignment) {
  auto a = static_cast<uint32_t>(std::max<uint64_t>(alignment, 1));
  return (value + a - 1) / a * a;
}

// Modifiers that do not change what is computed here: rounding to nearest, approximations (ours are
// at least as good), denormals (kept), hints.
bool IsIgnored(std::string_view modifier) {
  static constexpr std::string_view kIgnored[] = {".rn",  ".ftz",   ".approx", ".full",    ".uni",
                                                  ".sat", ".noftz", ".sync",   ".aligned", ".rna",
                                                  ".rz",  ".rm",    ".rp"};
  return std::find(std::begin(kIgnored), std::end(kIgnored), modifier) != std::end(kIgnored);
}

// Floating point, packed or not.
bool IsReal(Type type) { return IsFloat(type) || type == Type::kF16x2 || type == Type::kBF16x2; }

uint32_t RoundingOf(const PtxInstruction& instruction) {
  return instruction.Has(".rm") ? 1 : instruction.Has(".rp") ? 2 : instruction.Has(".rz") ? 3 : 0;
}

}  // namespace

char LetterOf(Type type) {
  switch (type) {
    case Type::kPred:
      return 'p';
    case Type::kF32:
      return 'f';
    case Type::kF64:
      return 'd';
    case Type::kF16:
    case Type::kBF16:
      return 'e';
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
      return 'l';
    default:
      return 'i';
  }
}

void Lowering::Reject(const std::string& why) const {
  throw Unsupported{current_->line, current_->Name() + (why.empty() ? "" : " (" + why + ")")};
}

Handler Lowering::Need(const std::string& key) const {
  const OpEntry* entry = FindOp(key);
  if (entry == nullptr) Reject();
  return entry->handler;
}

void Lowering::NeedOperands(const PtxInstruction& instruction, size_t count) const {
  if (instruction.operands.size() < count) {
    throw PtxError(instruction.line, "too few operands for " + instruction.Name());
  }
}

Instruction& Lowering::Emit(Handler handler) {
  Instruction& instruction = out_.code.emplace_back();
  instruction.run = handler;
  instruction.guard = guard_;
  instruction.line = (current_ != nullptr ? current_->line : source_.line) & 0x7fffffff;
  return instruction;
}

OperandOffset Lowering::Temporary(char letter) {
  uint32_t bytes = letter == 'p' ? 64 : IsWide(letter) ? 256 : 128;
  OperandOffset offset = next_register_;
  next_register_ += bytes;
  most_registers_ = std::max(most_registers_, next_register_);
  if (next_register_ > kMaxRegisterBytes) throw PtxError(source_.line, "too many registers");
  return offset;
}

OperandOffset Lowering::Constant(uint64_t bits, char letter) {
  bool wide = IsWide(letter);
  if (letter == 'p') bits = bits != 0 ? kAllLanes : 0;
  if (!wide) bits &= 0xffffffffu;
  auto [it, added] = constants_.try_emplace({bits, wide}, 0);
  if (added) {
    it->second = static_cast<OperandOffset>(out_.constants.size() * 8) | 1;
    uint64_t word = wide ? bits : bits << 32 | bits;
    out_.constants.insert(out_.constants.end(), wide ? kLanes : kLanes / 2, word);
  }
  return it->second;
}

OperandOffset Lowering::SourceRegister(const PtxOperand& operand, char letter) {
  char have = LetterOf(source_.registers[operand.reg]);
  OperandOffset offset = registers_[operand.reg];
  if ((have == 'p') != (letter == 'p')) Reject("predicate and value mixed");
  if (letter == 'p' && operand.negated) {
    OperandOffset inverse = Temporary('p');
    EmitPredicate("not.pred", inverse, offset);
    return inverse;
  }
  if (letter == 'p' || IsWide(have) == IsWide(letter)) return offset;
  OperandOffset converted = Temporary(letter);
  Instruction& mov = Emit(Need(IsWide(letter) ? "cvt.u64.u32" : "cvt.u32.u64"));
  mov.op[0] = converted;
  mov.op[1] = offset;
  return converted;
}

OperandOffset Lowering::SourceSpecial(std::string_view name, char letter) {
  auto special = FindSpecial(name);
  if (!special) Reject("special register " + std::string(name));
  out_.uses_reserved_shared |=
      special->id >= Special::kReservedSharedBegin && special->id <= Special::kReservedSharedEnd;
  if ((special->id == Special::kIsExplicitCluster) != (letter == 'p')) {
    Reject("predicate and value mixed");
  }
  OperandOffset to = Temporary(letter);
  Instruction& read = Emit(letter == 'p'    ? ReadSpecialPredicate
                           : IsWide(letter) ? ReadSpecial64
                                            : ReadSpecial32);
  read.op[0] = to;
  read.extra = static_cast<uint32_t>(special->id);
  return to;
}

OperandOffset Lowering::SourceSymbol(std::string_view name, uint64_t offset, char letter) {
  Special base = Special::kZero;
  uint64_t parameter_offset = 0;
  if (const LocalSlot* slot = FindLocal(current_->scope, name)) {
    base = Special::kFrameAddress;
    offset += slot->offset;
  } else if (FindKernelParameter(name, &parameter_offset) != nullptr) {
    base = Special::kParameterAddress;
    offset += parameter_offset;
  } else {
    auto it = symbols_.find(name);
    if (it == symbols_.end()) {
      throw PtxError(current_->line, "unknown name " + std::string(name));
    }
    const Symbol& symbol = it->second;
    if (symbol.kind == Symbol::Kind::kFunction) {
      return Constant(functions_[symbol.value]->handle, letter);
    }
    if (symbol.kind != Symbol::Kind::kDynamicShared) {
      return Constant(symbol.value + offset, letter);
    }
    base = Special::kDynamicSharedOffset;
  }
  OperandOffset to = Temporary(letter);
  Instruction& read = Emit(IsWide(letter) ? ReadSpecial64 : ReadSpecial32);
  read.op[0] = to;
  read.extra = static_cast<uint32_t>(base);
  read.imm = static_cast<int64_t>(offset);
  return to;
}

OperandOffset Lowering::Source(const PtxOperand& operand, char letter) {
  switch (operand.kind) {
    case PtxOperand::Kind::kRegister:
      return SourceRegister(operand, letter);
    case PtxOperand::Kind::kInteger:
      if (letter == 'f') {
        return Constant(std::bit_cast<uint32_t>(static_cast<float>(operand.value)), letter);
      }
      if (letter == 'd') {
        return Constant(std::bit_cast<uint64_t>(static_cast<double>(operand.value)), letter);
      }
      if (letter == 'p' && operand.negated) return Constant(operand.value == 0, 'p');
      return Constant(operand.value, letter);
    case PtxOperand::Kind::kFloat32: {
      auto value = std::bit_cast<float>(static_cast<uint32_t>(operand.value));
      if (letter == 'd') return Constant(std::bit_cast<uint64_t>(double{value}), letter);
      return Constant(operand.value, letter);
    }
    case PtxOperand::Kind::kFloat64: {
      auto value = std::bit_cast<double>(operand.value);
      if (letter == 'f') {
        return Constant(std::bit_cast<uint32_t>(static_cast<float>(value)), letter);
      }
      return Constant(operand.value, letter);
    }
    case PtxOperand::Kind::kSymbol:
      return SourceSymbol(operand.symbol, operand.value, letter);
    case PtxOperand::Kind::kSpecial:
      return SourceSpecial(operand.symbol, letter);
    default:
      Reject("operand");
  }
}

// A value of another width than the register's is written to a temporary and widened or narrowed
// after the instruction.
OperandOffset Lowering::Destination(const PtxOperand& operand, char letter, bool sign) {
  if (operand.kind == PtxOperand::Kind::kSink) return Temporary(letter);
  if (operand.kind != PtxOperand::Kind::kRegister) Reject("destination");
  char have = LetterOf(source_.registers[operand.reg]);
  OperandOffset offset = registers_[operand.reg];
  if ((have == 'p') != (letter == 'p')) Reject("predicate and value mixed");
  if (letter == 'p' || IsWide(have) == IsWide(letter)) return offset;
  OperandOffset temporary = Temporary(letter);
  widenings_.push_back({temporary, offset, IsWide(letter), sign});
  return temporary;
}

void Lowering::FlushWidening() {
  for (const Widening& w : widenings_) {
    const char* key = w.narrow ? "cvt.u32.u64" : w.sign ? "cvt.s64.s32" : "cvt.u64.u32";
    Instruction& mov = Emit(Need(key));
    mov.op[0] = w.to;
    mov.op[1] = w.from;
  }
  widenings_.clear();
}

void Lowering::EmitPredicate(const char* key, OperandOffset to, OperandOffset a, OperandOffset b) {
  Instruction& instruction = Emit(Need(key));
  instruction.op[0] = to;
  instruction.op[1] = a;
  instruction.op[2] = b;
}

std::string Lowering::Key(const PtxInstruction& instruction) const {
  std::string key(instruction.opcode);
  for (std::string_view modifier : instruction.modifiers) {
    bool saturates = modifier == ".sat" && !IsReal(instruction.LastType());
    if (saturates || !IsIgnored(modifier)) key += modifier;
  }
  return key;
}

// Falls back from signed to unsigned to untyped where the sign does not matter.
const OpEntry* Lowering::FindKey(const PtxInstruction& instruction) const {
  std::string key = Key(instruction);
  const OpEntry* entry = FindOp(key);
  size_t dot = key.rfind('.');
  if (entry != nullptr || dot == std::string::npos || dot + 1 >= key.size()) return entry;
  for (char type : {'u', 'b', 's'}) {
    if (key[dot + 1] != 's' && key[dot + 1] != 'b' && key[dot + 1] != 'u') break;
    key[dot + 1] = type;
    entry = FindOp(key);
    if (entry != nullptr) return entry;
  }
  return nullptr;
}

void Lowering::LowerByTable(const PtxInstruction& instruction) {
  const OpEntry* entry = FindKey(instruction);
  if (entry == nullptr || entry->signature == nullptr) Reject();
  EmitEntry(*entry, instruction);
}

void Lowering::EmitEntry(const OpEntry& entry, const PtxInstruction& instruction) {
  size_t count = std::strlen(entry.signature);
  NeedOperands(instruction, count);
  if (instruction.operands.size() != count) Reject("more operands");
  Type type = instruction.LastType();
  OperandOffset op[7] = {};
  for (size_t i = 1; i < count; ++i) op[i] = Source(instruction.operands[i], entry.signature[i]);
  op[0] = Destination(instruction.operands[0], entry.signature[0], IsSigned(type));
  uint32_t rounding = IsFloat(type) ? RoundingOf(instruction) : 0;
  Instruction& out = Emit(rounding != 0 ? WithRounding : entry.handler);
  std::copy(std::begin(op), std::end(op), out.op);
  if (rounding != 0) {
    out.extra = rounding;
    out.data = reinterpret_cast<const void*>(entry.handler);
  }
  if (instruction.Has(".sat") && IsReal(type)) {
    Instruction& sat = Emit(Need("sat" + std::string(instruction.modifiers.back())));
    sat.op[0] = sat.op[1] = op[0];
  }
}

void Lowering::LayOutRegisters() {
  registers_.resize(source_.registers.size());
  for (char pass : {'v', 'p'}) {
    for (size_t i = 0; i < registers_.size(); ++i) {
      char letter = LetterOf(source_.registers[i]);
      if ((letter == 'p') != (pass == 'p')) continue;
      if (source_.registers[i] == Type::kB128) {
        registers_[i] = Temporary('l');
        Temporary('l');  // its high half
      } else if (letter != 'p') {
        registers_[i] = Temporary(letter);
      } else {
        registers_[i] = next_register_;
        next_register_ += 4;
      }
    }
  }
  next_register_ = Align(next_register_, 64);
  carry_ = Temporary('i');
  first_temporary_ = next_register_;
}

void Lowering::LayOutSignature(const PtxFunction& source, CodeFunction& out) {
  uint32_t end = 0;
  auto place = [&](const std::vector<Variable>& variables, std::vector<LocalSlot>& slots) {
    for (const Variable& v : variables) {
      end = Align(end, v.alignment);
      if (end > kMaxLocalBytes || v.bytes > kMaxLocalBytes - end)
        throw PtxError(v.line, "parameters too large");
      slots.push_back({end, static_cast<uint32_t>(v.bytes)});
      end += static_cast<uint32_t>(v.bytes);
    }
  };
  if (!source.entry) {
    place(source.parameters, out.parameters);
    place(source.returns, out.returns);
  }
  out.local_bytes = Align(end, 16);
}

// Variables of scopes that are never open together share their place.
void Lowering::LayOutLocals() {
  if (!source_.entry) {
    for (size_t i = 0; i < source_.parameters.size(); ++i) {
      locals_[{0, source_.parameters[i].name}] = out_.parameters[i];
    }
    for (size_t i = 0; i < source_.returns.size(); ++i) {
      locals_[{0, source_.returns[i].name}] = out_.returns[i];
    }
  }
  std::map<uint32_t, uint32_t> ends;
  ends[0] = out_.local_bytes;
  uint32_t most = out_.local_bytes;
  for (const auto& [scope, variable] : source_.locals) {
    uint32_t outer = scope;
    while (ends.find(outer) == ends.end()) outer = source_.scopes[outer].parent;
    uint32_t start = Align(ends[outer], variable.alignment);
    if (variable.bytes > kMaxLocalBytes - std::min(start, kMaxLocalBytes)) {
      throw PtxError(variable.line, "too much local memory");
    }
    locals_[{scope, variable.name}] = {start, static_cast<uint32_t>(variable.bytes)};
    ends[scope] = start + static_cast<uint32_t>(variable.bytes);
    most = std::max(most, ends[scope]);
  }
  out_.local_bytes = Align(most, 16);
}

const LocalSlot* Lowering::FindLocal(uint32_t scope, std::string_view name) const {
  while (true) {
    auto it = locals_.find({scope, name});
    if (it != locals_.end()) return &it->second;
    if (scope == 0) return nullptr;
    scope = source_.scopes[scope].parent;
  }
}

const Variable* Lowering::FindKernelParameter(std::string_view name, uint64_t* offset) const {
  if (!source_.entry) return nullptr;
  uint64_t end = 0;
  for (const Variable& v : source_.parameters) {
    end = (end + v.alignment - 1) / v.alignment * v.alignment;
    if (v.name == name) {
      *offset = end;
      return &v;
    }
    end += v.bytes;
  }
  return nullptr;
}

void Lowering::Lower(const PtxInstruction& instruction) {
  current_ = &instruction;
  if (instruction.malformed) Reject("operands");
  guard_ = 0;
  next_register_ = first_temporary_;  // temporaries live for one PTX instruction
  if (instruction.guard >= 0) {
    guard_ = registers_[instruction.guard] | 1 | (instruction.guard_negated ? 2 : 0);
  }
  if (instruction.Has(".cc")) {
    LowerCarry(instruction);
  } else if (Method method = FindMethod(instruction.opcode)) {
    (this->*method)(instruction);
  } else {
    LowerByTable(instruction);
  }
  FlushWidening();
}

void Lowering::Run() {
  LayOutRegisters();
  LayOutLocals();
  try {
    for (const PtxInstruction& instruction : source_.body) {
      starts_.push_back(static_cast<uint32_t>(out_.code.size()));
      Lower(instruction);
      for (size_t i = starts_.back() + 1; i < out_.code.size(); ++i) out_.code[i].continues = 1;
    }
  } catch (const Unsupported& u) {
    out_.unsupported =
        "PTX line " + std::to_string(u.line) + ": the software device does not " + "know " + u.what;
    out_.code.clear();
    guard_ = 0;
    Emit(Trap);
    starts_.assign(source_.body.size(), 0);
    branches_.clear();
    for (auto* table : tables_) std::fill(table->begin(), table->end(), 0);
    tables_.clear();
  }
  guard_ = 0;
  current_ = nullptr;
  starts_.push_back(static_cast<uint32_t>(out_.code.size()));
  Emit(Return);  // falling off the end returns
  for (auto [code, target] : branches_) out_.code[code].extra = starts_[target];
  for (auto* table : tables_) {
    for (uint32_t& target : *table) target = starts_[target];
  }
  out_.register_bytes = most_registers_;
  out_.constants.resize(out_.constants.size() + 8);  // room to align the base
  auto address = reinterpret_cast<uintptr_t>(out_.constants.data());
  uintptr_t aligned = (address + 63) / 64 * 64;
  std::memmove(reinterpret_cast<void*>(aligned), out_.constants.data(),
               (out_.constants.size() - 8) * 8);
  out_.constant_base = reinterpret_cast<const std::byte*>(aligned);
}

}  // namespace softgpu
