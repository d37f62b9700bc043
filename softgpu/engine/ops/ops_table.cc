#include "softgpu/engine/ops/ops_table.h"

#include <unordered_map>

namespace softgpu {
namespace {

using Table = std::unordered_map<std::string_view, const OpEntry*>;

Table MakeTable(std::initializer_list<std::span<const OpEntry>> parts) {
  Table table;
  for (std::span<const OpEntry> part : parts) {
    for (const OpEntry& entry : part) table.emplace(entry.key, &entry);
  }
  return table;
}

[[maybe_unused]] bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}

#define SOFTGPU_TABLE(isa)                                                           \
  MakeTable({isa::IntegerOps(), isa::FloatOps(), isa::HalfOps(), isa::CompareOps(),  \
             isa::ConvertOps(), isa::MemoryOps(), isa::MoveOps(), isa::PackedOps(),  \
             isa::AtomicOps(), isa::WarpOps(), isa::QuarterOps(), isa::BarrierOps(), \
             isa::MatrixOps(), isa::MatrixMemoryOps(), isa::NarrowOps()})

}  // namespace

const OpEntry* FindOp(std::string_view key) {
#ifdef SOFTGPU_BASELINE_ALONE
  static const Table& table = *new Table(SOFTGPU_TABLE(baseline));
#else
  static const Table& table = *new Table(HasAvx2() ? SOFTGPU_TABLE(avx2) : SOFTGPU_TABLE(baseline));
#endif
  auto it = table.find(key);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace softgpu
