// mbarrier, and the copies that arrive at one when they are done.
#include <algorithm>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/run/cluster_memory.h"
#include "softgpu/engine/run/memory_flags.h"

namespace softgpu {

// Emits a handler of ops_barrier.cc for the barrier at `address`.
Instruction& Lowering::EmitBarrier(const PtxInstruction& instruction, const std::string& name,
                                   const PtxOperand& address, OperandOffset first,
                                   OperandOffset second) {
  AccessTarget target = FindTarget(instruction, address, 8);
  if (!target.place.empty() && target.place != ".shared") Reject("barrier that is not shared");
  Instruction& out = Emit(Need("mbarrier" + target.place + "." + name));
  out.op[1] = first;
  out.op[2] = second;
  out.op[4] = target.address;
  out.imm = target.offset;
  return out;
}

void Lowering::LowerBarrier(const PtxInstruction& instruction) {
  const std::vector<PtxOperand>& operands = instruction.operands;
  NeedOperands(instruction, 1);
  if (instruction.Has(".pending_count")) return LowerByTable(instruction);
  if (instruction.Has(".inval")) return;
  if (instruction.Has(".arrive") || instruction.Has(".arrive_drop")) {
    return LowerArrive(instruction);
  }
  if (instruction.Has(".test_wait") || instruction.Has(".try_wait")) {
    NeedOperands(instruction, 3);
    bool parity = instruction.Has(".parity");
    OperandOffset asked = Source(operands[2], parity ? 'i' : 'l');
    OperandOffset over = Destination(operands[0], 'p');
    EmitBarrier(instruction, parity ? "parity" : "wait", operands[1], asked).op[0] = over;
    return;
  }
  NeedOperands(instruction, 2);
  const char* name = instruction.Has(".init")          ? "init"
                     : instruction.Has(".expect_tx")   ? "expect_tx"
                     : instruction.Has(".complete_tx") ? "complete_tx"
                                                       : nullptr;
  if (name == nullptr) Reject();
  EmitBarrier(instruction, name, operands[0], Source(operands[1], 'i'));
}

// mbarrier.arrive{.expect_tx} {state,} [barrier]{, bytes or count}.
void Lowering::LowerArrive(const PtxInstruction& instruction) {
  bool returns = instruction.operands[0].kind != PtxOperand::Kind::kAddress;
  size_t address = returns ? 1 : 0;
  NeedOperands(instruction, address + 1);
  bool expects = instruction.Has(".expect_tx");
  if (expects) NeedOperands(instruction, address + 2);
  bool given = instruction.operands.size() > address + 1;
  OperandOffset value = given ? Source(instruction.operands[address + 1], 'i') : Constant(1, 'i');
  OperandOffset state = returns ? Destination(instruction.operands[0], 'l') : Temporary('l');
  const char* name = instruction.Has(".arrive") ? "arrive" : "arrive_drop";
  EmitBarrier(instruction, name, instruction.operands[address], expects ? Constant(1, 'i') : value,
              expects ? value : Constant(0, 'i'))
      .op[0] = state;
}

// cp.async.mbarrier.arrive [barrier]: the copies before are done. Without .noinc the barrier would
// first expect one arrival more: nothing in all.
void Lowering::LowerArriveAfterCopies(const PtxInstruction& instruction) {
  NeedOperands(instruction, 1);
  if (!instruction.Has(".noinc")) return;
  OperandOffset state = Temporary('l');
  EmitBarrier(instruction, "arrive", instruction.operands[0], Constant(1, 'i'), Constant(0, 'i'))
      .op[0] = state;
}

// cp.async.bulk [to], [from], bytes{, [barrier]}: done at once, too.
void Lowering::LowerBulkCopy(const PtxInstruction& instruction) {
  if (instruction.Has(".tensor")) return LowerTensorCopy(instruction);
  if (instruction.Has(".prefetch")) return;
  if (instruction.Has(".reduce")) return LowerBulkReduction(instruction);
  if (instruction.Has(".cp_mask")) Reject();
  bool loads = instruction.Has(".mbarrier::complete_tx::bytes");
  if (!instruction.Has(".global")) return LowerBulkSend(instruction, "cp.bulk.store");
  bool spreads = loads && instruction.Has(".multicast::cluster");
  NeedOperands(instruction, spreads ? 5 : loads ? 4 : 3);
  PtxInstruction global = instruction;
  global.modifiers = {".global"};
  PtxInstruction shared = instruction;
  shared.modifiers = {".shared"};
  AccessTarget inside = FindTarget(shared, instruction.operands[loads ? 0 : 1], 16);
  AccessTarget outside = FindTarget(global, instruction.operands[loads ? 1 : 0], 16);
  if (inside.place != ".shared" || !outside.place.empty()) Reject();
  OperandOffset bytes = Source(instruction.operands[2], 'i');
  OperandOffset ranks = spreads ? Source(instruction.operands[4], 'i') : 0;
  const size_t number = out_.code.size();
  Instruction& copy = Emit(Need(loads ? "cp.bulk.load" : "cp.bulk.store"));
  copy.op[1] = bytes;
  copy.op[3] = inside.address;
  copy.op[4] = outside.address;
  copy.op[5] = Constant(static_cast<uint64_t>(inside.offset), 'l');
  copy.imm = outside.offset;
  if (loads) EmitBarrier(shared, "complete_tx", instruction.operands[3], bytes);
  if (!spreads) return;
  MulticastSite& site = EmitMulticast(number, inside.address, ranks);
  site.copy.op[3] = site.target_there;
}

// cp{.reduce}.async.bulk.shared::cluster.shared::cta [to], [from], bytes, [barrier]: as what goes
// to memory, but to the generic address of what is another block's.
void Lowering::LowerBulkSend(const PtxInstruction& instruction, const std::string& key) {
  if (!instruction.Has(".mbarrier::complete_tx::bytes")) Reject();
  NeedOperands(instruction, 4);
  PtxInstruction shared = instruction;
  shared.modifiers = {".shared"};
  int64_t offset = 0;
  OperandOffset to = GenericAddress(shared, instruction.operands[0], &offset);
  AccessTarget from = FindTarget(shared, instruction.operands[1], 16);
  if (from.place != ".shared") Reject();
  OperandOffset bytes = Source(instruction.operands[2], 'i');
  Instruction& send = Emit(Need(key));
  send.op[1] = bytes;
  send.op[3] = from.address;
  send.op[4] = to;
  send.op[5] = Constant(static_cast<uint64_t>(from.offset), 'l');
  send.imm = offset;
  EmitBarrier(shared, "complete_tx", instruction.operands[3], bytes);
}

// cp.reduce.async.bulk.global.shared::cta.bulk_group.operation.type [to], [from], bytes
void Lowering::LowerBulkReduction(const PtxInstruction& instruction) {
  Type type = instruction.LastType();
  if (type == Type::kNone) Reject();
  std::string key = "cp.bulk.reduce";
  for (std::string_view name : {".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor"}) {
    if (instruction.Has(name)) key += name;
  }
  bool ordered = instruction.Has(".min") || instruction.Has(".max");
  bool bits = !ordered && !IsFloat(type);
  key +=
      bits ? ".b" + std::to_string(TypeBytes(type) * 8) : std::string(instruction.modifiers.back());
  if (!instruction.Has(".bulk_group")) return LowerBulkSend(instruction, key);
  NeedOperands(instruction, 3);
  PtxInstruction global = instruction;
  global.modifiers = {".global"};
  PtxInstruction shared = instruction;
  shared.modifiers = {".shared"};
  AccessTarget outside = FindTarget(global, instruction.operands[0], 16);
  AccessTarget inside = FindTarget(shared, instruction.operands[1], 16);
  if (inside.place != ".shared" || !outside.place.empty()) Reject();
  OperandOffset bytes = Source(instruction.operands[2], 'i');
  Instruction& reduce = Emit(Need(key));
  reduce.op[1] = bytes;
  reduce.op[3] = inside.address;
  reduce.op[4] = outside.address;
  reduce.op[5] = Constant(static_cast<uint64_t>(inside.offset), 'l');
  reduce.imm = outside.offset;
}

// One of two numbers, as a predicate says.
OperandOffset Lowering::Chosen(const PtxOperand& predicate, uint64_t yes, uint64_t no) {
  OperandOffset chosen = Temporary('i');
  OperandOffset op[] = {chosen, Constant(yes, 'i'), Constant(no, 'i'), Source(predicate, 'p')};
  Instruction& select = Emit(Need("selp.b32"));
  std::copy(std::begin(op), std::end(op), select.op);
  return chosen;
}

// cp.async.ca.shared.global [to], [from], bytes{, bytes to read, or whether to read none}: done at
// once, so that waiting for it is nothing.
void Lowering::LowerCopyAsync(const PtxInstruction& instruction) {
  if (!instruction.Has(".async")) Reject();
  if (instruction.Has(".commit_group") || instruction.Has(".wait_group") ||
      instruction.Has(".wait_all")) {
    return;
  }
  if (instruction.Has(".mbarrier")) return LowerArriveAfterCopies(instruction);
  if (instruction.Has(".bulk")) return LowerBulkCopy(instruction);
  if (!IsShared(instruction) || !instruction.Has(".global")) Reject();
  NeedOperands(instruction, 3);
  const PtxOperand& size = instruction.operands[2];
  uint64_t bytes = size.value;
  if (size.kind != PtxOperand::Kind::kInteger || (bytes != 4 && bytes != 8 && bytes != 16)) {
    Reject("size");
  }
  bool partial = instruction.operands.size() > 3;
  bool ignoring = partial && instruction.operands[3].kind == PtxOperand::Kind::kRegister &&
                  source_.registers[instruction.operands[3].reg] == Type::kPred;
  AccessTarget to = FindTarget(instruction, instruction.operands[0], bytes);
  PtxInstruction global = instruction;
  global.modifiers = {".global"};
  AccessTarget from = FindTarget(global, instruction.operands[1], bytes);
  if (to.place != ".shared" || !from.place.empty()) Reject();
  OperandOffset read = ignoring  ? Chosen(instruction.operands[3], 0, bytes)
                       : partial ? Source(instruction.operands[3], 'i')
                                 : Constant(bytes, 'i');
  Instruction& copy = Emit(Need("cp.async"));
  copy.op[1] = read;
  copy.op[3] = to.address;
  copy.op[4] = from.address;
  copy.op[5] = Constant(static_cast<uint64_t>(to.offset), 'l');
  copy.imm = from.offset;
  copy.extra = static_cast<uint32_t>(bytes);
}

}  // namespace softgpu
