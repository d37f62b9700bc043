// Products of small matrices by a warp: wmma and mma, and their loads and stores.
#include <array>
#include <cstring>
#include <limits>

#include "softgpu/engine/matrix.h"
#include "softgpu/engine/memory_access.h"
#include "softgpu/engine/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

constexpr uint32_t kMostElements = 512;  // of a matrix: 32 by 16
using Values = std::array<double, kMostElements>;

// Where element `index` of a lane lies in the matrix, row by row.
uint32_t PlaceOf(const Fragment& f, uint32_t lane, uint32_t index) {
  if (!f.defined) return lane * f.Elements() + index;
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

uint64_t GetBits(const Warp& w, const Fragment& f, uint32_t lane, uint32_t index) {
  uint32_t each = f.ElementsOfRegister();
  OperandOffset reg = f.registers[index / each];
  if (f.type == MatrixType::kF64) return w.Reg<uint64_t>(reg)[lane];
  return w.Reg<uint32_t>(reg)[lane] >> (index % each * BytesOf(f.type) * 8);
}

void SetBits(Warp& w, const Fragment& f, uint32_t lane, uint32_t index, uint64_t bits) {
  uint32_t each = f.ElementsOfRegister();
  OperandOffset reg = f.registers[index / each];
  if (f.type == MatrixType::kF64) {
    w.Reg<uint64_t>(reg)[lane] = bits;
    return;
  }
  uint32_t shift = index % each * BytesOf(f.type) * 8;
  uint32_t mask = (each == 1 ? ~0u : (1u << BytesOf(f.type) * 8) - 1) << shift;
  uint32_t& word = w.Reg<uint32_t>(reg)[lane];
  word = (word & ~mask) | (static_cast<uint32_t>(bits) << shift & mask);
}

double ToDouble(MatrixType type, uint64_t bits) {
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
    case MatrixType::kS8:
      return static_cast<int8_t>(word);
    case MatrixType::kU8:
      return static_cast<uint8_t>(word);
    default:
      return static_cast<int32_t>(word);
  }
}

uint64_t FromDouble(MatrixType type, double value, bool clamps) {
  switch (type) {
    case MatrixType::kF16:
      return Pack<Half>(static_cast<Half>(value));
    case MatrixType::kF64:
      return std::bit_cast<uint64_t>(value);
    case MatrixType::kS32:
      if (clamps) {
        value = std::fmin(std::fmax(value, std::numeric_limits<int32_t>::min()),
                          std::numeric_limits<int32_t>::max());
      }
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    default:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

void Read(const Warp& w, const Fragment& f, Values& values) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < f.Elements(); ++i) {
      values[PlaceOf(f, lane, i)] = ToDouble(f.type, GetBits(w, f, lane, i));
    }
  }
}

// Sums are kept in double, exact for integers, and rounded once: the device promises no less.
void Multiply(Warp& w, const Instruction& ins) {
  if (!GatherLanes(w, kAllLanes)) return;
  const auto& site = *static_cast<const MatrixSite*>(ins.data);
  Values a;
  Values b;
  Values sum;
  Read(w, site.a, a);
  Read(w, site.b, b);
  Read(w, site.c, sum);
  const uint32_t columns = site.b.columns;
  for (uint32_t row = 0; row < site.a.rows; ++row) {
    double* to = sum.data() + row * columns;
    for (uint32_t k = 0; k < site.b.rows; ++k) {
      double factor = a[row * site.b.rows + k];
      for (uint32_t n = 0; n < columns; ++n) to[n] += factor * b[k * columns + n];
    }
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < site.d.Elements(); ++i) {
      double value = sum[PlaceOf(site.d, lane, i)];
      SetBits(w, site.d, lane, i, FromDouble(site.d.type, value, site.clamps));
    }
  }
}

// The addresses of every lane's element `index`. op: 1 elements from one row (or column) to the
// next, 4 the matrix's address, 5 room for the lanes' addresses.
bool ElementAddresses(Warp& w, const Instruction& ins, const Fragment& f, uint32_t index,
                      Addresses& at) {
  auto first = static_cast<uint32_t>(std::countr_zero(w.exec));
  uint64_t base = w.Reg<uint64_t>(ins.op[4])[first] + static_cast<uint64_t>(ins.imm);
  uint64_t step = w.Reg<uint32_t>(ins.op[1])[first];
  auto* lanes = w.Reg<uint64_t>(ins.op[5]);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t place = PlaceOf(f, lane, index);
    uint32_t row = place / f.columns;
    uint32_t column = place % f.columns;
    uint64_t element = f.by_columns ? column * step + row : row * step + column;
    lanes[lane] = base + element * BytesOf(f.type);
  }
  Instruction access = ins;
  access.op[4] = ins.op[5];
  access.imm = 0;
  return GenericAddresses(w, access, BytesOf(f.type), at);
}

// Fragments with more room than elements hold them several times.
SOFTGPU_NO_TSAN void LoadMatrix(Warp& w, const Instruction& ins) {
  if (!GatherLanes(w, kAllLanes)) return;
  const Fragment& f = static_cast<const MatrixSite*>(ins.data)->d;
  auto room = static_cast<uint32_t>(f.registers.size()) * f.ElementsOfRegister();
  for (uint32_t index = 0; index < f.Elements(); ++index) {
    Addresses at;
    if (!ElementAddresses(w, ins, f, index, at)) return;
    ForEachLane(w.exec, [&](int lane) {
      uint64_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const void*>(at.lane[lane]), BytesOf(f.type));
      for (uint32_t to = index; to < room; to += f.Elements()) {
        SetBits(w, f, static_cast<uint32_t>(lane), to, bits);
      }
    });
  }
}

SOFTGPU_NO_TSAN void StoreMatrix(Warp& w, const Instruction& ins) {
  if (!GatherLanes(w, kAllLanes)) return;
  const Fragment& f = static_cast<const MatrixSite*>(ins.data)->d;
  for (uint32_t index = 0; index < f.Elements(); ++index) {
    Addresses at;
    if (!ElementAddresses(w, ins, f, index, at)) return;
    ForEachLane(w.exec, [&](int lane) {
      uint64_t bits = GetBits(w, f, static_cast<uint32_t>(lane), index);
      std::memcpy(reinterpret_cast<void*>(at.lane[lane]), &bits, BytesOf(f.type));
    });
  }
}

// ldmatrix and stmatrix: `extra` matrices of 8 rows of 8 16-bit elements. Lane 8 * m + r has the
// address of row r of matrix m; of each row lane 4 * r + c has elements 2 * c and 2 * c + 1.
template <bool kStore, bool kTransposed>
SOFTGPU_NO_TSAN void MoveRows(Warp& w, const Instruction& ins) {
  if (!GatherLanes(w, kAllLanes)) return;
  Addresses at;
  uint32_t lanes = w.exec;
  w.exec &= ins.extra == 4 ? kAllLanes : (1u << ins.extra * 8) - 1;
  bool allowed = GenericAddresses(w, ins, 16, at);
  w.exec = lanes;
  if (!allowed) return;
  for (uint32_t m = 0; m < ins.extra; ++m) {
    auto* values = w.Reg<uint32_t>(ins.op[m]);
    for (uint32_t i = 0; i < 64; ++i) {
      uint32_t lane = kTransposed ? i % 8 * 4 + i / 16 : i / 2;
      uint32_t shift = (kTransposed ? i / 8 : i) % 2 * 16;
      auto* p = reinterpret_cast<std::byte*>(at.lane[m * 8 + i / 8]) + i % 8 * 2;
      uint16_t element = static_cast<uint16_t>(values[lane] >> shift);
      if constexpr (kStore) {
        std::memcpy(p, &element, sizeof element);
      } else {
        std::memcpy(&element, p, sizeof element);
        values[lane] = (values[lane] & ~(0xffffu << shift)) | uint32_t{element} << shift;
      }
    }
  }
}

constexpr OpEntry kOps[] = {
    {"ldmatrix", nullptr, MoveRows<false, false>},
    {"ldmatrix.trans", nullptr, MoveRows<false, true>},
    {"mma", nullptr, Multiply},
    {"stmatrix", nullptr, MoveRows<true, false>},
    {"stmatrix.trans", nullptr, MoveRows<true, true>},
    {"wmma.load", nullptr, LoadMatrix},
    {"wmma.store", nullptr, StoreMatrix},
};

}  // namespace

std::span<const OpEntry> MatrixOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
