// The products of matrices that PTX has up to sm_90.
#include <algorithm>

#include "softgpu/engine/ops/matrix.h"

namespace softgpu {
namespace {

constexpr uint32_t Bit(MatrixType type) { return 1u << static_cast<uint32_t>(type); }

constexpr uint32_t kBit = Bit(MatrixType::kB1);
constexpr uint32_t kNibbles = Bit(MatrixType::kS4) | Bit(MatrixType::kU4);
constexpr uint32_t kBytes = Bit(MatrixType::kS8) | Bit(MatrixType::kU8);
constexpr uint32_t kQuarters = Bit(MatrixType::kE4m3) | Bit(MatrixType::kE5m2);
constexpr uint32_t kHalf = Bit(MatrixType::kF16);
constexpr uint32_t kHalves = kHalf | Bit(MatrixType::kBF16);
constexpr uint32_t kTensorFloat = Bit(MatrixType::kTF32);
constexpr uint32_t kDouble = Bit(MatrixType::kF64);

struct Product {
  std::string_view kind;
  MatrixShape shape;
  uint32_t types;  // of a and b
};

constexpr Product kProducts[] = {
    {"mma", {8, 8, 4}, kHalf | kDouble},
    {"mma", {8, 8, 16}, kBytes},
    {"mma", {8, 8, 32}, kNibbles},
    {"mma", {8, 8, 128}, kBit},
    {"mma", {16, 8, 4}, kTensorFloat | kDouble},
    {"mma", {16, 8, 8}, kHalves | kTensorFloat | kDouble},
    {"mma", {16, 8, 16}, kHalves | kBytes | kQuarters | kDouble},
    {"mma", {16, 8, 32}, kBytes | kNibbles | kQuarters},
    {"mma", {16, 8, 64}, kNibbles},
    {"mma", {16, 8, 128}, kBit},
    {"mma", {16, 8, 256}, kBit},
    {"mma.sp", {16, 8, 8}, kTensorFloat},
    {"mma.sp", {16, 8, 16}, kHalves | kTensorFloat},
    {"mma.sp", {16, 8, 32}, kHalves | kBytes},
    {"mma.sp", {16, 8, 64}, kBytes | kNibbles | kQuarters},
    {"mma.sp", {16, 8, 128}, kNibbles},
    {"wmma", {8, 8, 4}, kDouble},
    {"wmma", {8, 8, 32}, kNibbles},
    {"wmma", {8, 8, 128}, kBit},
    {"wmma", {8, 32, 16}, kHalves | kBytes},
    {"wmma", {16, 16, 8}, kTensorFloat},
    {"wmma", {16, 16, 16}, kHalves | kBytes},
    {"wmma", {32, 8, 16}, kHalves | kBytes},
};

uint32_t TypesOf(std::string_view kind, const MatrixShape& shape) {
  for (const Product& product : kProducts) {
    if (product.kind == kind && product.shape == shape) return product.types;
  }
  return 0;
}

constexpr bool FitTheRoom() {
  return std::all_of(std::begin(kProducts), std::end(kProducts), [](const Product& product) {
    const MatrixShape& s = product.shape;
    return std::max({s.m * s.k, s.k * s.n, s.m * s.n}) <= kMaxElements;
  });
}
static_assert(FitTheRoom());

}  // namespace

bool IsProduct(std::string_view kind, const MatrixShape& shape, MatrixType type) {
  return (TypesOf(kind, shape) & Bit(type)) != 0;
}

bool IsShapeOf(std::string_view kind, const MatrixShape& shape) {
  return TypesOf(kind, shape) != 0;
}

bool IsSum(MatrixType type) {
  return type == MatrixType::kF16 || type == MatrixType::kF32 || type == MatrixType::kF64 ||
         type == MatrixType::kS32;
}

}  // namespace softgpu
