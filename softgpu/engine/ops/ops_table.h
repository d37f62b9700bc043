// The tables of operations: a normalised PTX name, the storage of its operands, and the handler.
// The files ops_*.cc are compiled once per instruction set of the host CPU, each time in another
// namespace; the best that the CPU runs is chosen at the first use.
#pragma once

#include <span>
#include <string_view>

#include "softgpu/engine/run/code.h"

namespace softgpu {

struct OpEntry {
  // Opcode and the modifiers that matter: "add.f32". Rounding to nearest, .ftz, .approx, .full,
  // .uni and .sat are left out; see Lowering::Key.
  const char* key;
  // One letter per operand, destination first: h, i 16 or 32 bits of integer, l 64 bits, e half
  // precision, f single, d double, p predicate. Null: the operation has its own lowering.
  const char* signature;
  Handler handler;
};

// Null if there is no such operation.
const OpEntry* FindOp(std::string_view key);

#define SOFTGPU_DECLARE_OPS(isa)              \
  namespace isa {                             \
  std::span<const OpEntry> IntegerOps();      \
  std::span<const OpEntry> FloatOps();        \
  std::span<const OpEntry> HalfOps();         \
  std::span<const OpEntry> CompareOps();      \
  std::span<const OpEntry> ConvertOps();      \
  std::span<const OpEntry> MatrixMemoryOps(); \
  std::span<const OpEntry> MatrixOps();       \
  std::span<const OpEntry> MemoryOps();       \
  std::span<const OpEntry> MoveOps();         \
  std::span<const OpEntry> NarrowOps();       \
  std::span<const OpEntry> PackedOps();       \
  std::span<const OpEntry> AtomicOps();       \
  std::span<const OpEntry> BarrierOps();      \
  std::span<const OpEntry> QuarterOps();      \
  std::span<const OpEntry> WarpOps();         \
  }
SOFTGPU_DECLARE_OPS(baseline)
SOFTGPU_DECLARE_OPS(avx2)
#undef SOFTGPU_DECLARE_OPS

}  // namespace softgpu
