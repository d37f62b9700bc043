// Lowering of conversions, carry chains and exchanges between lanes.
#include <algorithm>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/ops/narrowing.h"
#include "softgpu/engine/ptx/lexer.h"

namespace softgpu {
namespace {

std::string TypeName(Type type) {
  switch (type) {
    case Type::kF16:
      return "f16";
    case Type::kBF16:
      return "bf16";
    case Type::kF32:
      return "f32";
    case Type::kF64:
      return "f64";
    default:
      return (IsSigned(type) ? "s" : "u") + std::to_string(TypeBytes(type) * 8);
  }
}

bool ConvertsQuarters(const PtxInstruction& instruction) {
  return instruction.Has(".e4m3x2") || instruction.Has(".e5m2x2");
}

// Conversions for which the plain ones are not enough.
bool Narrows(const PtxInstruction& instruction) {
  bool pair = instruction.Has(".f16x2") || instruction.Has(".bf16x2");
  bool plain = !instruction.Has(".rz") && !instruction.Has(".relu");
  return instruction.Has(".tf32") || instruction.Has(".satfinite") || (pair && !plain);
}

}  // namespace

// cvt[.rounding][.sat].to.from: to an integer with a rounding is "round, then convert"; directed
// roundings of floating-point results run the plain conversion in that rounding mode.
void Lowering::LowerCvt(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  if (ConvertsQuarters(instruction) || instruction.Has(".pack")) return LowerByTable(instruction);
  if (Narrows(instruction)) return LowerCvtNarrowing(instruction);
  std::vector<Type> types;
  for (std::string_view m : instruction.modifiers) {
    if (auto type = ParseType(m)) types.push_back(*type);
  }
  if (types.size() != 2) Reject();
  Type to = types[0];
  Type from = types[1];
  if (to == Type::kF16x2 || to == Type::kBF16x2) {
    if (from != Type::kF32) Reject();
    PtxInstruction plain = instruction;
    plain.modifiers = {instruction.modifiers[instruction.modifiers.size() - 2], ".f32"};
    const OpEntry* entry = FindOp(Key(plain));
    if (entry == nullptr) Reject();
    return EmitEntry(*entry, plain);
  }
  OperandOffset source = Source(instruction.operands[1], LetterOf(from));
  OperandOffset result = Destination(instruction.operands[0], LetterOf(to), IsSigned(to));
  std::string_view integral;
  for (std::string_view m : {".rni", ".rzi", ".rmi", ".rpi"}) {
    if (instruction.Has(m)) integral = m;
  }
  if (IsFloat(from) && !integral.empty()) {
    OperandOffset whole = to == from ? result : Temporary(LetterOf(from));
    Instruction& round = Emit(Need("cvt" + std::string(integral) + "." + TypeName(from)));
    round.op[0] = whole;
    round.op[1] = source;
    source = whole;
  } else if (IsFloat(from) && !IsFloat(to)) {
    Reject("no rounding");
  }
  uint32_t rounding = instruction.Has(".rm")   ? 1
                      : instruction.Has(".rp") ? 2
                      : instruction.Has(".rz") ? 3
                                               : 0;
  if (rounding != 0 && (to == Type::kF16 || to == Type::kBF16)) {
    LowerCvtToHalf(to, from, source, result, rounding);
  } else if (to != from || integral.empty()) {
    bool clamp = instruction.Has(".sat") && !IsFloat(to) && !IsFloat(from);
    Handler handler = Need((clamp ? "cvt.sat." : "cvt.") + TypeName(to) + "." + TypeName(from));
    Instruction& convert = Emit(rounding != 0 ? WithRounding : handler);
    convert.op[0] = result;
    convert.op[1] = source;
    convert.extra = rounding;
    if (rounding != 0) convert.data = reinterpret_cast<const void*>(handler);
  }
  if (instruction.Has(".sat") && IsFloat(to)) {
    Instruction& sat = Emit(Need("sat." + TypeName(to)));
    sat.op[0] = sat.op[1] = result;
  }
  if (instruction.Has(".relu")) {
    OperandOffset zero = Constant(0, LetterOf(to));
    Instruction& relu = Emit(Need("max.NaN." + TypeName(to)));
    relu.op[0] = relu.op[1] = result;
    relu.op[2] = zero;
  }
}

// Rounds to a half in another direction than to the nearest: by way of a double, which holds every
// source but the long integers exactly; those are rounded in the same direction both times.
void Lowering::LowerCvtToHalf(Type to, Type from, OperandOffset source, OperandOffset result,
                              uint32_t rounding) {
  if (from != Type::kF64) {
    OperandOffset wide = Temporary('d');
    Handler handler = Need("cvt.f64." + TypeName(from));
    Instruction& widen = Emit(WithRounding);
    widen.op[0] = wide;
    widen.op[1] = source;
    widen.extra = rounding;
    widen.data = reinterpret_cast<const void*>(handler);
    source = wide;
  }
  const char* mode = rounding == 1 ? ".rm." : rounding == 2 ? ".rp." : ".rz.";
  Instruction& round = Emit(Need("cvt" + (mode + TypeName(to)) + ".f64"));
  round.op[0] = result;
  round.op[1] = source;
}

// cvt.rna.tf32.f32 d, a and cvt.rz.relu.f16x2.f32 d, a, b
void Lowering::LowerCvtNarrowing(const PtxInstruction& instruction) {
  const auto& modifiers = instruction.modifiers;
  if (modifiers.size() < 2 || modifiers.back() != ".f32") Reject();
  std::string to(modifiers[modifiers.size() - 2]);
  size_t sources = instruction.operands.size() - 1;
  if (sources != (to.ends_with("x2") ? 2 : 1)) Reject("operands");
  OperandOffset op[3] = {};
  for (size_t i = 1; i <= sources; ++i) op[i] = Source(instruction.operands[i], 'f');
  op[0] = Destination(instruction.operands[0], 'i');
  static constexpr std::pair<std::string_view, Narrowing> kWays[] = {
      {".relu", kRectified}, {".rna", kTiesAway}, {".rz", kTowardsZero}, {".satfinite", kFinite}};
  Instruction& narrow = Emit(Need("cvt.narrow" + to));
  std::copy(std::begin(op), std::end(op), narrow.op);
  for (const auto& [name, way] : kWays) {
    if (instruction.Has(name)) narrow.extra |= way;
  }
}

// add.cc, addc, sub.cc, subc, mad.cc and madc: op[5] is the carry in and out. The first of a chain
// (.cc without c) has the key "…c.cc" too, but starts from a carry of zero; a subtraction from one,
// which means that nothing was borrowed.
void Lowering::LowerCarry(const PtxInstruction& instruction) {
  Type type = instruction.LastType();
  bool mad = instruction.opcode.substr(0, 3) == "mad";
  bool takes = instruction.opcode.back() == 'c';
  NeedOperands(instruction, mad ? 4 : 3);
  std::string key(instruction.opcode.substr(0, 3));
  if (mad) key += instruction.Has(".hi") ? ".hi" : ".lo";
  key += instruction.Has(".cc") ? ".cc" : ".c";
  bool sign = mad && instruction.Has(".hi") && IsSigned(type);
  key += (sign ? ".s" : ".u") + std::to_string(TypeBytes(type) * 8);
  char letter = LetterOf(type);
  OperandOffset op[7] = {};
  for (size_t i = 1; i < (mad ? 4u : 3u); ++i) op[i] = Source(instruction.operands[i], letter);
  op[0] = Destination(instruction.operands[0], letter);
  op[5] = takes ? carry_ : Constant(key.starts_with("sub") ? 1 : 0, 'i');
  op[6] = carry_;
  Instruction& out = Emit(Need(key));
  std::copy(std::begin(op), std::end(op), out.op);
}

// lop3.b32 d, a, b, c, table and lop3.or.b32 d|p, a, b, c, table, q: p is (d != 0) or q.
void Lowering::LowerLogic(const PtxInstruction& instruction) {
  const bool either = instruction.Has(".or");
  if (!either && !instruction.Has(".and")) return LowerByTable(instruction);
  NeedOperands(instruction, 6);
  const PtxOperand& to = instruction.operands[0];
  if (to.kind != PtxOperand::Kind::kVector || to.elements.size() != 2) Reject();
  OperandOffset op[5] = {};
  for (size_t i = 1; i < std::size(op); ++i) op[i] = Source(instruction.operands[i], 'i');
  OperandOffset other = Source(instruction.operands[5], 'p');
  op[0] = Destination(to.elements[0], 'i');
  Instruction& logic = Emit(Need("lop3.b32"));
  std::copy(std::begin(op), std::end(op), logic.op);
  OperandOffset some = Temporary('p');
  EmitPredicate("setp.ne.u32", some, op[0], Constant(0, 'i'));
  EmitPredicate(either ? "or.pred" : "and.pred", Destination(to.elements[1], 'p'), some, other);
}

// shfl.sync.mode.b32 d|p, a, b, c, membermask
void Lowering::LowerShfl(const PtxInstruction& instruction) {
  NeedOperands(instruction, 4);
  const PtxOperand& to = instruction.operands[0];
  bool two = to.kind == PtxOperand::Kind::kVector && to.elements.size() == 2;
  OperandOffset op[7] = {};
  for (size_t i = 1; i < std::min<size_t>(instruction.operands.size(), 5); ++i) {
    op[i] = Source(instruction.operands[i], 'i');
  }
  if (instruction.operands.size() < 5) op[4] = Constant(0, 'i');
  op[0] = Destination(two ? to.elements[0] : to, 'i');
  op[5] = two ? Destination(to.elements[1], 'p') : Temporary('p');
  std::string mode;
  for (std::string_view m : {".up", ".down", ".bfly", ".idx"}) {
    if (instruction.Has(m)) mode = m;
  }
  Instruction& shuffle = Emit(Need("shfl" + mode));
  std::copy(std::begin(op), std::end(op), shuffle.op);
}

// match.sync.mode d|p, a, membermask
void Lowering::LowerMatch(const PtxInstruction& instruction) {
  NeedOperands(instruction, 3);
  const PtxOperand& to = instruction.operands[0];
  bool two = to.kind == PtxOperand::Kind::kVector && to.elements.size() == 2;
  bool wide = TypeBytes(instruction.LastType()) == 8;
  OperandOffset op[6] = {};
  op[1] = Source(instruction.operands[1], wide ? 'l' : 'i');
  op[2] = Source(instruction.operands[2], 'i');
  op[0] = Destination(two ? to.elements[0] : to, 'i');
  op[5] = two ? Destination(to.elements[1], 'p') : Temporary('p');
  std::string key = instruction.Has(".all") ? "match.all" : "match.any";
  Instruction& match = Emit(Need(key + (wide ? ".b64" : ".b32")));
  std::copy(std::begin(op), std::end(op), match.op);
}

// elect.sync d|p, membermask: p is true in one lane, whose number d is.
void Lowering::LowerElect(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  const PtxOperand& to = instruction.operands[0];
  if (to.kind != PtxOperand::Kind::kVector || to.elements.size() != 2) Reject();
  OperandOffset members = Source(instruction.operands[1], 'i');
  OperandOffset leader = Destination(to.elements[0], 'i');
  OperandOffset elected = Destination(to.elements[1], 'p');
  Instruction& elect = Emit(Need("elect"));
  elect.op[0] = leader;
  elect.op[2] = members;
  elect.op[5] = elected;
}

// vote.sync.mode d, a, membermask
void Lowering::LowerVote(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  std::string mode;
  for (std::string_view m : {".all", ".any", ".uni", ".ballot"}) {
    if (instruction.Has(m)) mode = m;
  }
  OperandOffset op[3] = {};
  op[1] = Source(instruction.operands[1], 'p');
  op[2] = instruction.operands.size() > 2 ? Source(instruction.operands[2], 'i') : Constant(0, 'i');
  op[0] = Destination(instruction.operands[0], mode == ".ballot" ? 'i' : 'p');
  Instruction& vote = Emit(Need("vote" + mode));
  std::copy(std::begin(op), std::end(op), vote.op);
}

}  // namespace softgpu
