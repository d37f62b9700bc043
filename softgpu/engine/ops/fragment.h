// Reads and writes the elements of fragments. Included by ops_*.cc only.
#pragma once

#include <limits>

#include "softgpu/engine/ops/matrix.h"
#include "softgpu/engine/ops/quarter.h"

namespace softgpu::SOFTGPU_ISA {

// Of the four products of eight lanes each: two lanes of every four share the rows of single
// precision sums, all else goes by whole rows or columns.
inline uint32_t PlaceInQuads(const Fragment& f, uint32_t lane, uint32_t index) {
  uint32_t row = lane % 4;
  uint32_t column = index;
  if (f.part == Fragment::Part::kC && f.type != MatrixType::kF16) {
    row = lane % 2 + (index & 2);
    column = (index & 4) + (lane & 2) + index % 2;
  } else if (f.part != Fragment::Part::kC && f.by_columns) {
    row = index;
    column = lane % 4;
  }
  (f.part == Fragment::Part::kB ? column : row) += lane / 16 * 4;
  return (lane / 4 % 4 * (f.rows / 4) + row) * f.columns + column;
}

// Where element `index` of a lane lies in the matrix, row by row.
inline uint32_t PlaceOf(const Fragment& f, uint32_t lane, uint32_t index) {
  if (f.layout == Fragment::Layout::kOwn) return lane * f.Elements() + index;
  if (f.layout == Fragment::Layout::kQuads) return PlaceInQuads(f, lane, index);
  uint32_t group = lane / 4;
  uint32_t thread = lane % 4;
  if (f.part == Fragment::Part::kC) {
    return (group + index / 2 * 8) * f.columns + thread * 2 + index % 2;
  }
  uint32_t each = f.ElementsOfRegister();
  uint32_t number = index / each;
  uint32_t along = thread * each + index % each;  // k
  if (f.part == Fragment::Part::kB) return (number * 4 * each + along) * f.columns + group;
  uint32_t tall = f.rows / 8;
  return (group + number % tall * 8) * f.columns + number / tall * 4 * each + along;
}

inline uint64_t GetBits(const Warp& w, const Fragment& f, uint32_t lane, uint32_t index) {
  uint32_t each = f.ElementsOfRegister();
  OperandOffset reg = f.registers[index / each];
  if (f.type == MatrixType::kF64) return w.Reg<uint64_t>(reg)[lane];
  return w.Reg<uint32_t>(reg)[lane] >> (index % each * BitsOf(f.type));
}

inline void SetBits(Warp& w, const Fragment& f, uint32_t lane, uint32_t index, uint64_t bits) {
  uint32_t each = f.ElementsOfRegister();
  OperandOffset reg = f.registers[index / each];
  if (f.type == MatrixType::kF64) {
    w.Reg<uint64_t>(reg)[lane] = bits;
    return;
  }
  uint32_t shift = index % each * BitsOf(f.type);
  uint32_t mask = (each == 1 ? ~0u : (1u << BitsOf(f.type)) - 1) << shift;
  uint32_t& word = w.Reg<uint32_t>(reg)[lane];
  word = (word & ~mask) | (static_cast<uint32_t>(bits) << shift & mask);
}

// All types' values are doubles, too. Bits above the type's own do not count.
inline double ToDouble(MatrixType type, uint64_t bits) {
  auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case MatrixType::kF16:
      return ToFloat(Unpack<Half>(word));
    case MatrixType::kBF16:
      return ToFloat(Unpack<Bfloat>(word));
    case MatrixType::kTF32:  // the lower bits of the fraction do not take part
      return std::bit_cast<float>(word & 0xffffe000);
    case MatrixType::kF32:
      return std::bit_cast<float>(word);
    case MatrixType::kF64:
      return std::bit_cast<double>(bits);
    case MatrixType::kE4m3:
      return FromQuarter<E4m3>(word);
    case MatrixType::kE5m2:
      return FromQuarter<E5m2>(word);
    case MatrixType::kS8:
      return static_cast<int8_t>(word);
    case MatrixType::kU8:
      return static_cast<uint8_t>(word);
    case MatrixType::kS4:
      return static_cast<int32_t>(word << 28) >> 28;
    case MatrixType::kU4:
      return word & 15;
    case MatrixType::kB1:
      return word & 1;
    default:
      return static_cast<int32_t>(word);
  }
}

// Only to the types of sums.
inline uint64_t FromDouble(MatrixType type, double value, bool clamps) {
  switch (type) {
    case MatrixType::kF16:
      return value != value ? 0x7fff : Pack<Half>(static_cast<Half>(value));
    case MatrixType::kF64:
      return std::bit_cast<uint64_t>(value);
    case MatrixType::kS32:
      if (clamps) {
        value = std::fmin(std::fmax(value, std::numeric_limits<int32_t>::min()),
                          std::numeric_limits<int32_t>::max());
      }
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    default:
      return value != value ? 0x7fffffff : std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

}  // namespace softgpu::SOFTGPU_ISA
