#include <algorithm>
#include <array>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/run/builtins.h"

namespace softgpu {

// Opcodes with a lowering of their own, sorted; all others are in the tables of ops_*.cc.
Lowering::Method Lowering::FindMethod(std::string_view opcode) {
  static constexpr std::array kMethods = {
      Special_{"addc", &Lowering::LowerCarry},
      Special_{"applypriority", &Lowering::LowerPrefetch},
      Special_{"atom", &Lowering::LowerAtomic},
      Special_{"bar", &Lowering::LowerBar},
      Special_{"barrier", &Lowering::LowerBar},
      Special_{"bra", &Lowering::LowerBra},
      Special_{"brkpt", &Lowering::LowerNothing},
      Special_{"brx", &Lowering::LowerBrx},
      Special_{"call", &Lowering::LowerCall},
      Special_{"cp", &Lowering::LowerCopyAsync},
      Special_{"createpolicy", &Lowering::LowerPolicy},
      Special_{"cvt", &Lowering::LowerCvt},
      Special_{"cvta", &Lowering::LowerCvta},
      Special_{"discard", &Lowering::LowerPrefetch},
      Special_{"elect", &Lowering::LowerElect},
      Special_{"exit", &Lowering::LowerExit},
      Special_{"fence", &Lowering::LowerFence},
      Special_{"getctarank", &Lowering::LowerRank},
      Special_{"griddepcontrol", &Lowering::LowerNothing},
      Special_{"isspacep", &Lowering::LowerIsspacep},
      Special_{"ld", &Lowering::LowerLoad},
      Special_{"ldmatrix", &Lowering::LowerMatrixRows},
      Special_{"ldu", &Lowering::LowerLoad},
      Special_{"lop3", &Lowering::LowerLogic},
      Special_{"madc", &Lowering::LowerCarry},
      Special_{"mapa", &Lowering::LowerMap},
      Special_{"match", &Lowering::LowerMatch},
      Special_{"mbarrier", &Lowering::LowerBarrier},
      Special_{"membar", &Lowering::LowerFence},
      Special_{"mma", &Lowering::LowerMatrixProduct},
      Special_{"mov", &Lowering::LowerMov},
      Special_{"nanosleep", &Lowering::LowerNanosleep},
      Special_{"pmevent", &Lowering::LowerNothing},
      Special_{"prefetch", &Lowering::LowerPrefetch},
      Special_{"prefetchu", &Lowering::LowerPrefetch},
      Special_{"red", &Lowering::LowerAtomic},
      Special_{"ret", &Lowering::LowerRet},
      Special_{"set", &Lowering::LowerSet},
      Special_{"setmaxnreg", &Lowering::LowerNothing},
      Special_{"setp", &Lowering::LowerSetp},
      Special_{"shfl", &Lowering::LowerShfl},
      Special_{"st", &Lowering::LowerStore},
      Special_{"stmatrix", &Lowering::LowerMatrixRows},
      Special_{"subc", &Lowering::LowerCarry},
      Special_{"suld", &Lowering::LowerSurface},
      Special_{"suq", &Lowering::LowerTextureQuery},
      Special_{"sust", &Lowering::LowerSurface},
      Special_{"tex", &Lowering::LowerTexture},
      Special_{"tld4", &Lowering::LowerGather},
      Special_{"trap", &Lowering::LowerTrap},
      Special_{"txq", &Lowering::LowerTextureQuery},
      Special_{"vote", &Lowering::LowerVote},
      Special_{"wmma", &Lowering::LowerMatrixProduct},
  };
  auto it = std::lower_bound(kMethods.begin(), kMethods.end(), opcode,
                             [](const Special_& a, std::string_view b) { return a.opcode < b; });
  return it != kMethods.end() && it->opcode == opcode ? it->method : nullptr;
}

uint32_t Lowering::ResolveLabel(uint32_t scope, std::string_view name) const {
  while (true) {
    const Scope& s = source_.scopes[scope];
    auto it = s.labels.find(name);
    if (it != s.labels.end()) return it->second;
    if (scope == 0) throw PtxError(current_->line, "unknown label " + std::string(name));
    scope = s.parent;
  }
}

void Lowering::LowerBra(const PtxInstruction& instruction) {
  NeedOperands(instruction, 1);
  uint32_t target = ResolveLabel(instruction.scope, instruction.operands[0].symbol);
  branches_.emplace_back(static_cast<uint32_t>(out_.code.size()), target);
  Emit(Branch);
}

void Lowering::LowerBrx(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  OperandOffset index = Source(instruction.operands[0], 'i');
  std::string_view name = instruction.operands[1].symbol;
  for (uint32_t scope = instruction.scope;; scope = source_.scopes[scope].parent) {
    auto it = source_.scopes[scope].branch_targets.find(name);
    if (it != source_.scopes[scope].branch_targets.end()) {
      auto table = std::make_unique<std::vector<uint32_t>>();
      for (std::string_view label : it->second) {
        table->push_back(ResolveLabel(instruction.scope, label));
      }
      Instruction& branch = Emit(BranchIndexed);
      branch.op[0] = index;
      branch.data = table.get();
      tables_.push_back(table.get());
      out_.branch_tables.push_back(std::move(table));
      return;
    }
    if (scope == 0) throw PtxError(instruction.line, "unknown branch table");
  }
}

std::vector<LocalSlot> Lowering::CallSlots(const PtxInstruction& instruction,
                                           const PtxOperand& list) {
  std::vector<LocalSlot> slots;
  for (const PtxOperand& operand : list.elements) {
    const LocalSlot* slot = FindLocal(instruction.scope, operand.symbol);
    if (operand.kind != PtxOperand::Kind::kSymbol || slot == nullptr) Reject("call operand");
    slots.push_back(*slot);
  }
  return slots;
}

// call (results), function, (arguments), prototype; results and arguments may be missing.
void Lowering::LowerCall(const PtxInstruction& instruction) {
  auto site = std::make_unique<CallSite>();
  size_t next = 0;
  NeedOperands(instruction, 1);
  if (instruction.operands[0].kind == PtxOperand::Kind::kVector) {
    site->results = CallSlots(instruction, instruction.operands[next++]);
  }
  NeedOperands(instruction, next + 1);
  const PtxOperand& function = instruction.operands[next++];
  if (next < instruction.operands.size() &&
      instruction.operands[next].kind == PtxOperand::Kind::kVector) {
    site->arguments = CallSlots(instruction, instruction.operands[next]);
  }
  Handler handler = nullptr;
  if (function.kind == PtxOperand::Kind::kRegister) {
    site->pointer = Source(function, 'l');
    handler = CallIndirect;
  } else {
    auto it = symbols_.find(function.symbol);
    const bool declared = it != symbols_.end() && it->second.kind == Symbol::Kind::kFunction;
    const CodeFunction* callee = declared ? functions_[it->second.value].get() : nullptr;
    if (declared && callee->has_body) {
      site->callee = callee;
      out_.callees.push_back(callee);
      handler = Call;
    } else {
      handler = FindBuiltin(function.symbol);  // where texts were linked, without a declaration
      if (handler == nullptr && declared) {
        Reject("external function " + std::string(function.symbol));
      } else if (handler == nullptr) {
        throw PtxError(instruction.line, "unknown function " + std::string(function.symbol));
      }
    }
  }
  Emit(handler).data = site.get();
  out_.call_sites.push_back(std::move(site));
}

void Lowering::LowerRet(const PtxInstruction&) { Emit(Return); }
void Lowering::LowerExit(const PtxInstruction&) { Emit(Exit); }
void Lowering::LowerTrap(const PtxInstruction&) { Emit(Trap); }
void Lowering::LowerNothing(const PtxInstruction&) {}

void Lowering::LowerFence(const PtxInstruction& instruction) {
  if (instruction.Has(".proxy")) return;
  Emit(MemoryFence);
}

void Lowering::LowerNanosleep(const PtxInstruction&) { Emit(NanoSleep); }

void Lowering::LowerBar(const PtxInstruction& instruction) {
  if (instruction.Has(".cluster")) return LowerClusterBarrier(instruction);
  bool warp = instruction.Has(".warp");
  bool reduction = instruction.Has(".red");
  NeedOperands(instruction, reduction ? 2 : 1);
  if (warp) {
    OperandOffset mask = Source(instruction.operands[0], 'i');
    Emit(WarpBarrier).op[0] = mask;
    return;
  }
  size_t next = reduction ? 1 : 0;
  OperandOffset op[4] = {};
  uint32_t extra = instruction.Has(".arrive") ? kBarrierArrive : 0;
  op[0] = Source(instruction.operands[next++], 'i');
  if (next + (reduction ? 1 : 0) < instruction.operands.size()) {
    op[1] = Source(instruction.operands[next++], 'i');
    extra |= kBarrierCounted;
  }
  if (reduction) {
    uint32_t kind = instruction.Has(".popc") ? 1 : instruction.Has(".and") ? 2 : 3;
    NeedOperands(instruction, next + 1);
    op[2] = Source(instruction.operands[next], 'p');
    op[3] = Destination(instruction.operands[0], kind == 1 ? 'i' : 'p');
    if (!widenings_.empty()) Reject("result");  // it comes when the instruction has ended
    extra |= kind << kBarrierReductionShift;
  }
  Instruction& bar = Emit(BlockBarrier);
  std::copy(std::begin(op), std::end(op), bar.op);
  bar.extra = extra;
}

// setp.lt.and.f32 p|q, a, b, r: a comparison, and each of it and its inverse combined with r.
OperandOffset Lowering::Compare(const PtxInstruction& instruction, size_t first,
                                OperandOffset* inverse) {
  NeedOperands(instruction, first + 2);
  Type type = instruction.LastType();
  if (type == Type::kNone) Reject("without a type");
  std::string comparison(instruction.modifiers[0]);
  std::string name(instruction.modifiers.back());
  if (!IsFloat(type) && name[1] == 'b') name[1] = 'u';
  if (comparison == ".lo" || comparison == ".ls" || comparison == ".hi" || comparison == ".hs") {
    comparison = comparison == ".lo"   ? ".lt"
                 : comparison == ".ls" ? ".le"
                 : comparison == ".hi" ? ".gt"
                                       : ".ge";
  }
  char letter = LetterOf(type);
  OperandOffset a = Source(instruction.operands[first], letter);
  OperandOffset b = Source(instruction.operands[first + 1], letter);
  OperandOffset result = Temporary('p');
  EmitPredicate(("setp" + comparison + name).c_str(), result, a, b);
  std::string_view combine;
  for (std::string_view m : {".and", ".or", ".xor"}) {
    if (instruction.Has(m)) combine = m;
  }
  if (inverse != nullptr) {
    *inverse = Temporary('p');
    EmitPredicate("not.pred", *inverse, result);
  }
  if (!combine.empty()) {
    NeedOperands(instruction, first + 3);
    OperandOffset c = Source(instruction.operands[first + 2], 'p');
    std::string key = std::string(combine.substr(1)) + ".pred";
    EmitPredicate(key.c_str(), result, result, c);
    if (inverse != nullptr) EmitPredicate(key.c_str(), *inverse, *inverse, c);
  }
  return result;
}

void Lowering::LowerSetp(const PtxInstruction& instruction) {
  NeedOperands(instruction, 3);
  const PtxOperand& to = instruction.operands[0];
  bool two = to.kind == PtxOperand::Kind::kVector && to.elements.size() == 2;
  Type type = instruction.LastType();
  if (type == Type::kF16x2 || type == Type::kBF16x2) {
    if (!two) Reject();
    Handler handler = Need("setp2" + std::string(instruction.modifiers[0]) +
                           std::string(instruction.modifiers.back()));
    if (instruction.Has(".and") || instruction.Has(".or") || instruction.Has(".xor")) Reject();
    OperandOffset a = Source(instruction.operands[1], 'i');
    OperandOffset b = Source(instruction.operands[2], 'i');
    OperandOffset low = Destination(to.elements[0], 'p');
    OperandOffset high = Destination(to.elements[1], 'p');
    Instruction& compare = Emit(handler);
    compare.op[0] = low;
    compare.op[1] = a;
    compare.op[2] = b;
    compare.op[3] = high;
    return;
  }
  OperandOffset inverse = 0;
  OperandOffset result = Compare(instruction, 1, two ? &inverse : nullptr);
  EmitPredicate("mov.pred", Destination(two ? to.elements[0] : to, 'p'), result);
  if (two) EmitPredicate("mov.pred", Destination(to.elements[1], 'p'), inverse);
}

// set.lt.u32.f32 d, a, b: all ones or zero; set….f32….: 1.0 or 0.
void Lowering::LowerSet(const PtxInstruction& instruction) {
  NeedOperands(instruction, 3);
  std::vector<Type> types;
  for (std::string_view m : instruction.modifiers) {
    if (auto type = ParseType(m)) types.push_back(*type);
  }
  if (types.size() != 2) Reject();
  if (types[1] == Type::kF16x2 || types[1] == Type::kBF16x2) {
    if (instruction.operands.size() != 3) Reject();
    std::string kind = types[0] == types[1] ? "" : ".u32";
    Handler handler = Need("set2" + std::string(instruction.modifiers[0]) + kind +
                           std::string(instruction.modifiers.back()));
    OperandOffset a = Source(instruction.operands[1], 'i');
    OperandOffset b = Source(instruction.operands[2], 'i');
    OperandOffset to = Destination(instruction.operands[0], 'i');
    Instruction& set = Emit(handler);
    set.op[0] = to;
    set.op[1] = a;
    set.op[2] = b;
    return;
  }
  OperandOffset predicate = Compare(instruction, 1, nullptr);
  uint64_t one = types[0] == Type::kF32     ? 0x3f800000
                 : types[0] == Type::kF16   ? 0x3c00
                 : types[0] == Type::kBF16  ? 0x3f80
                 : TypeBytes(types[0]) == 2 ? 0xffff
                                            : 0xffffffff;
  OperandOffset to = Destination(instruction.operands[0], 'i');
  OperandOffset a = Constant(one, 'i');
  OperandOffset b = Constant(0, 'i');
  Instruction& select = Emit(Need("selp.b32"));
  select.op[0] = to;
  select.op[1] = a;
  select.op[2] = b;
  select.op[3] = predicate;
}

}  // namespace softgpu
