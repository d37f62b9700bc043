// Executable form of PTX: fixed-size instructions whose operands are offsets into a warp's register
// file or into the function's pool of broadcast constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace softgpu {

constexpr int kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

// An operand is a byte offset; its lowest bit says of what: 0 the frame's registers, 1 the
// function's constants. A register is 32 lanes of 4 bytes (types up to 32 bits) or of 8 bytes; a
// predicate is one 32-bit mask.
using OperandOffset = uint32_t;

struct alignas(64) Instruction {
  Handler run = nullptr;
  uint32_t guard = 0;  // predicate's offset | 1, and | 2 if negated; 0 = no guard
  uint32_t line : 31 = 0;
  uint32_t continues : 1 = 0;  // not the first of its PTX instruction
  OperandOffset op[7] = {};
  uint32_t extra = 0;          // branch target, element count, … (the handler's own)
  int64_t imm = 0;             // address offset, special register, … (the handler's own)
  const void* data = nullptr;  // call site, branch table, inner handler
};
static_assert(sizeof(Instruction) == 64);

// A variable of a function's per-lane memory: parameters, return values, locals.
struct LocalSlot {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct CodeFunction;
struct MatrixSite;
struct MulticastSite;
struct TensorSite;
struct TextureSite;

struct CallSite {
  const CodeFunction* callee = nullptr;  // null: the address is in the register `pointer`
  OperandOffset pointer = 0;
  std::vector<LocalSlot> arguments;  // in the caller's frame
  std::vector<LocalSlot> results;
};

struct CodeFunction {
  std::string name;
  bool entry = false;
  bool has_body = false;
  std::string unsupported;  // why this function cannot run, with the PTX line; empty if it can
  uint64_t handle = 0;      // the value of its address
  std::vector<Instruction> code;
  std::vector<uint64_t> constants;  // 64-byte aligned through `constant_base`
  const std::byte* constant_base = nullptr;
  uint32_t register_bytes = 0;        // per warp
  uint32_t local_bytes = 0;           // per lane
  uint32_t used_registers = 0;        // estimate for KernelInfo
  bool uses_reserved_shared = false;  // where cooperative groups of several warps meet
  std::vector<LocalSlot> parameters;
  std::vector<LocalSlot> returns;
  std::vector<const CodeFunction*> callees;  // direct calls
  std::vector<std::unique_ptr<CallSite>> call_sites;
  std::vector<std::shared_ptr<TensorSite>> tensor_sites;
  std::vector<std::shared_ptr<TextureSite>> texture_sites;
  std::vector<std::shared_ptr<MatrixSite>> matrix_sites;
  std::vector<std::shared_ptr<MulticastSite>> multicast_sites;
  std::vector<std::unique_ptr<std::vector<uint32_t>>> branch_tables;
};

// Where a function's address points: this base plus 16 times its number in the module. Far from
// every mapping, so that loads through it fault.
constexpr uint64_t kFunctionHandleBase = 0x4c57000000000000;

class DeviceHeap;
class Kernel;

// What running code asks of the module that it is from.
class CodeModule {
 public:
  virtual const CodeFunction* FindFunction(uint64_t handle) const = 0;  // null if there is none
  virtual const Kernel* FindKernel(uint64_t handle) const = 0;  // null if the function is no kernel
  virtual DeviceHeap& heap() const = 0;

 protected:
  ~CodeModule() = default;
};

class Kernel {
 public:
  const CodeFunction* function = nullptr;
  const CodeModule* module = nullptr;
  std::string unsupported;  // of the kernel or of anything that it calls
  size_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  bool uses_reserved_shared = false;  // it or anything that it calls
  int max_threads = 1024;
  uint32_t cluster[3] = {};  // as in KernelInfo, and the two that follow
  bool needs_cluster = false;
  uint32_t most_cluster_blocks = 0;
  bool may_malloc = false;
};

}  // namespace softgpu
