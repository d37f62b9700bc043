// Turns a parsed function into code. lower.cc holds operands and the operations that the tables
// describe; lower_memory.cc and lower_control.cc those with rules of their own.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "softgpu/engine/ops/matrix.h"
#include "softgpu/engine/ops/ops_table.h"
#include "softgpu/engine/ptx/ptx.h"
#include "softgpu/engine/run/code.h"
#include "softgpu/engine/run/control.h"

namespace softgpu {

// What a module-level name stands for.
struct Symbol {
  enum class Kind : uint8_t { kMemory, kShared, kDynamicShared, kFunction, kReference };
  Kind kind = Kind::kMemory;
  // Address, offset in shared memory, index of the function, or a reference's own value.
  uint64_t value = 0;
  uint64_t bytes = 0;
};
using SymbolTable = std::unordered_map<std::string_view, Symbol>;

// An instruction that this device does not know; makes its function unsupported.
struct Unsupported {
  uint32_t line;
  std::string what;
};

class Lowering {
 public:
  Lowering(const PtxFunction& source, const SymbolTable& symbols,
           const std::vector<std::unique_ptr<CodeFunction>>& functions, CodeFunction& out)
      : source_(source), symbols_(symbols), functions_(functions), out_(out) {}

  // Offsets of parameters and results, which callers need before any code exists.
  static void LayOutSignature(const PtxFunction& source, CodeFunction& out);
  void Run();  // throws PtxError; an unknown opcode lands in CodeFunction::unsupported

 private:
  using Method = void (Lowering::*)(const PtxInstruction&);
  struct Special_ {
    std::string_view opcode;
    Method method;
  };
  static Method FindMethod(std::string_view opcode);

  // lower.cc
  void LayOutRegisters();
  void LayOutLocals();
  void Lower(const PtxInstruction& instruction);
  void LowerByTable(const PtxInstruction& instruction);
  std::string Key(const PtxInstruction& instruction) const;
  const OpEntry* FindKey(const PtxInstruction& instruction) const;
  void EmitEntry(const OpEntry& entry, const PtxInstruction& instruction);
  [[noreturn]] void Reject(const std::string& why = "") const;
  Handler Need(const std::string& key) const;
  Instruction& Emit(Handler handler);
  void FlushWidening();
  OperandOffset Temporary(char letter);
  OperandOffset Constant(uint64_t bits, char letter);
  OperandOffset Source(const PtxOperand& operand, char letter);
  OperandOffset SourceRegister(const PtxOperand& operand, char letter);
  OperandOffset SourceSymbol(std::string_view name, uint64_t offset, char letter);
  OperandOffset SourceSpecial(std::string_view name, char letter);
  OperandOffset Destination(const PtxOperand& operand, char letter, bool sign = false);
  void NeedOperands(const PtxInstruction& instruction, size_t count) const;
  const LocalSlot* FindLocal(uint32_t scope, std::string_view name) const;
  const Variable* FindKernelParameter(std::string_view name, uint64_t* offset) const;

  // lower_memory.cc
  void LowerMov(const PtxInstruction& instruction);
  void LowerMovVector(const PtxInstruction& instruction);
  void LowerLoad(const PtxInstruction& instruction);
  void LowerStore(const PtxInstruction& instruction);
  void LowerAtomic(const PtxInstruction& instruction);
  void EmitAtomic(const PtxInstruction& instruction, size_t first);
  void LowerCvta(const PtxInstruction& instruction);
  void LowerIsspacep(const PtxInstruction& instruction);
  void LowerPrefetch(const PtxInstruction& instruction);
  void LowerPolicy(const PtxInstruction& instruction);
  struct AccessTarget {
    std::string place;  // "", ".shared", ".frame" or ".param" for the handler's name
    OperandOffset address = 0;
    int64_t offset = 0;
  };
  AccessTarget FindTarget(const PtxInstruction& instruction, const PtxOperand& address,
                          uint64_t bytes);

  // lower_wide.cc
  using Halves = std::array<OperandOffset, 2>;
  Halves WideHalves(const PtxOperand& operand, bool written);
  void LowerWideMov(const PtxInstruction& instruction);
  void LowerWideAccess(const PtxInstruction& instruction);
  void LowerWideAtomic(const PtxInstruction& instruction, std::string_view operation);

  // lower_barrier.cc
  void LowerBarrier(const PtxInstruction& instruction);
  void LowerArrive(const PtxInstruction& instruction);
  void LowerArriveAfterCopies(const PtxInstruction& instruction);
  void LowerBulkCopy(const PtxInstruction& instruction);
  void LowerBulkReduction(const PtxInstruction& instruction);
  void LowerBulkSend(const PtxInstruction& instruction, const std::string& key);
  void LowerCopyAsync(const PtxInstruction& instruction);
  OperandOffset Chosen(const PtxOperand& predicate, uint64_t yes, uint64_t no);
  Instruction& EmitBarrier(const PtxInstruction& instruction, const std::string& name,
                           const PtxOperand& address, OperandOffset first,
                           OperandOffset second = 0);

  // lower_cluster.cc
  void LowerMap(const PtxInstruction& instruction);
  void LowerRank(const PtxInstruction& instruction);
  void LowerClusterBarrier(const PtxInstruction& instruction);
  void LowerCompletion(const PtxInstruction& instruction, size_t barrier, uint64_t bytes);
  MulticastSite& EmitMulticast(size_t copy, OperandOffset target, OperandOffset ranks);

  // lower_tensor.cc
  void LowerTensorCopy(const PtxInstruction& instruction);

  // lower_texture.cc
  TextureSite& LowerSite(const PtxInstruction& instruction, const PtxOperand& address, bool whole);
  OperandOffset SourceHandle(const PtxOperand& address);
  using TexelResults = std::array<OperandOffset, 4>;
  TexelResults LowerResults(const PtxInstruction& instruction);
  void LowerResident(const PtxInstruction& instruction);
  void LowerTexture(const PtxInstruction& instruction);
  void LowerGather(const PtxInstruction& instruction);
  void LowerSurface(const PtxInstruction& instruction);
  void LowerTextureQuery(const PtxInstruction& instruction);

  // lower_matrix.cc
  void FillFragment(Fragment& fragment, const PtxOperand& operand, bool written);
  OperandOffset GenericAddress(const PtxInstruction& instruction, const PtxOperand& address,
                               int64_t* offset);
  void ReadMetadata(MatrixSite& site, const PtxInstruction& instruction);
  void LowerMatrixAccess(const PtxInstruction& instruction);
  void LowerMatrixProduct(const PtxInstruction& instruction);
  void LowerMatrixRows(const PtxInstruction& instruction);

  // lower_control.cc
  void LowerBra(const PtxInstruction& instruction);
  void LowerBrx(const PtxInstruction& instruction);
  void LowerCall(const PtxInstruction& instruction);
  void LowerRet(const PtxInstruction& instruction);
  void LowerExit(const PtxInstruction& instruction);
  void LowerTrap(const PtxInstruction& instruction);
  void LowerNothing(const PtxInstruction& instruction);
  void LowerFence(const PtxInstruction& instruction);
  void LowerNanosleep(const PtxInstruction& instruction);
  void LowerBar(const PtxInstruction& instruction);
  void LowerSetp(const PtxInstruction& instruction);
  void LowerSet(const PtxInstruction& instruction);
  void LowerCvt(const PtxInstruction& instruction);
  void LowerCvtToHalf(Type to, Type from, OperandOffset source, OperandOffset result,
                      uint32_t rounding);
  void LowerCvtNarrowing(const PtxInstruction& instruction);
  void LowerShfl(const PtxInstruction& instruction);
  void LowerMatch(const PtxInstruction& instruction);
  void LowerElect(const PtxInstruction& instruction);
  void LowerVote(const PtxInstruction& instruction);
  void LowerCarry(const PtxInstruction& instruction);
  void LowerLogic(const PtxInstruction& instruction);
  OperandOffset Compare(const PtxInstruction& instruction, size_t first, OperandOffset* inverse);
  void EmitPredicate(const char* key, OperandOffset to, OperandOffset a, OperandOffset b = 0);
  uint32_t ResolveLabel(uint32_t scope, std::string_view name) const;
  std::vector<LocalSlot> CallSlots(const PtxInstruction& instruction, const PtxOperand& list);

  const PtxFunction& source_;
  const SymbolTable& symbols_;
  const std::vector<std::unique_ptr<CodeFunction>>& functions_;
  CodeFunction& out_;

  const PtxInstruction* current_ = nullptr;
  uint32_t guard_ = 0;
  uint32_t next_register_ = 0;    // bytes
  uint32_t first_temporary_ = 0;  // bytes
  uint32_t most_registers_ = 0;   // bytes
  std::vector<OperandOffset> registers_;
  std::map<std::pair<uint32_t, std::string_view>, LocalSlot> locals_;
  std::map<std::pair<uint64_t, bool>, OperandOffset> constants_;  // (bits, wide)
  struct Widening {
    OperandOffset from, to;
    bool narrow, sign;
  };
  std::vector<Widening> widenings_;
  OperandOffset carry_ = 0;                              // the CC register: 32 lanes of 0 or 1
  std::vector<uint32_t> starts_;                         // code index of each PTX instruction
  std::vector<std::pair<uint32_t, uint32_t>> branches_;  // code index, PTX index of the target
  std::vector<std::vector<uint32_t>*> tables_;           // branch tables of PTX indices
};

char LetterOf(Type type);
bool IsShared(const PtxInstruction& instruction);  // names shared memory, of any block

}  // namespace softgpu
