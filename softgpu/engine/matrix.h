// Fragments of matrices: what one warp holds of a matrix in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/engine/code.h"

namespace softgpu {

enum class MatrixType : uint8_t { kF16, kBF16, kTF32, kF32, kF64, kS8, kU8, kS32 };

constexpr uint32_t BytesOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF64:
      return 8;
    case MatrixType::kF16:
    case MatrixType::kBF16:
      return 2;
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 1;
    default:
      return 4;
  }
}

struct Fragment {
  // a is m by k, b is k by n, c (and d) m by n.
  enum class Part : uint8_t { kA, kB, kC };
  // Of mma, PTX says which lane holds which element; that of wmma is the device's own affair.
  bool defined = false;
  bool by_columns = false;  // in memory
  Part part = Part::kA;
  MatrixType type = MatrixType::kF16;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<OperandOffset> registers;

  uint32_t Elements() const { return rows * columns / kLanes; }  // that a lane holds
  uint32_t ElementsOfRegister() const { return BytesOf(type) < 4 ? 4 / BytesOf(type) : 1; }
};

// d = a * b + c. A load or a store of a fragment has it in d.
struct MatrixSite {
  Fragment d, a, b, c;
  bool clamps = false;  // integers, instead of wrapping around
};

}  // namespace softgpu
