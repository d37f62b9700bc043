// Fragments of matrices: what one warp holds of a matrix in registers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "softgpu/engine/run/code.h"

namespace softgpu {

enum class MatrixType : uint8_t {
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kE4m3,
  kE5m2,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kS32,
};

constexpr uint32_t BitsOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF64:
      return 64;
    case MatrixType::kF16:
    case MatrixType::kBF16:
      return 16;
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 8;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
    default:
      return 32;
  }
}

// Bytes that an access to one element touches.
constexpr uint32_t BytesOf(MatrixType type) { return (BitsOf(type) + 7) / 8; }

struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

constexpr uint32_t kMaxElements = 4096;  // of a matrix: 16 by 256

// Whether PTX has such products; `kind` is "mma", "mma.sp" or "wmma", `type` that of a or b.
bool IsProduct(std::string_view kind, const MatrixShape& shape, MatrixType type);
bool IsShapeOf(std::string_view kind, const MatrixShape& shape);  // for any type
bool IsSum(MatrixType type);                                      // can be that of c and d

struct Fragment {
  // a is m by k, b is k by n, c (and d) m by n.
  enum class Part : uint8_t { kA, kB, kC };
  // Of wmma, which lane holds which element is the device's own affair; of mma, PTX says it: eight
  // groups of four lanes share the rows, or (of m8n8k4 of halves) each of four times eight lanes
  // has a product of its own. Those four matrices lie below one another.
  enum class Layout : uint8_t { kOwn, kGroups, kQuads };
  Layout layout = Layout::kOwn;
  bool by_columns = false;  // in memory, or in a quad's registers
  Part part = Part::kA;
  MatrixType type = MatrixType::kF16;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<OperandOffset> registers;

  uint32_t Elements() const { return rows * columns / kLanes; }  // that a lane holds
  uint32_t ElementsOfRegister() const { return BitsOf(type) < 32 ? 32 / BitsOf(type) : 1; }
};

// d = a * b + c. A load or a store of a fragment has it in d.
struct MatrixSite {
  Fragment d, a, b, c;
  uint32_t products = 1;   // independent ones
  bool clamps = false;     // integers, instead of wrapping around
  bool exclusive = false;  // bits are combined by exclusive or instead of and
  // Of each row of a only every second element is there; `metadata` says which.
  bool sparse = false;
  OperandOffset metadata = 0;
  uint32_t first_lane = 0;  // of each group's four, of those whose metadata count
};

}  // namespace softgpu
