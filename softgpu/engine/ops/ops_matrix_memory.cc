// Moves fragments of matrices: wmma's loads and stores, ldmatrix, stmatrix and movmatrix.
#include <cstring>

#include "softgpu/engine/ops/fragment.h"
#include "softgpu/engine/ops/memory_access.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// Elements of less than a byte lie `shift` bits up in theirs.
struct ElementsAt : Addresses {
  uint32_t shift[kLanes];
};

// The addresses of every lane's element `index`. op: 1 elements from one row (or column) to the
// next, 4 the matrix's address, 5 room for the lanes' addresses.
bool ElementAddresses(Warp& w, const Instruction& ins, const Fragment& f, uint32_t index,
                      ElementsAt& at) {
  auto first = static_cast<uint32_t>(std::countr_zero(w.exec));
  uint64_t base = w.Reg<uint64_t>(ins.op[4])[first] + static_cast<uint64_t>(ins.imm);
  uint64_t step = w.Reg<uint32_t>(ins.op[1])[first];
  auto* lanes = w.Reg<uint64_t>(ins.op[5]);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t place = PlaceOf(f, lane, index);
    uint32_t row = place / f.columns;
    uint32_t column = place % f.columns;
    uint64_t element = f.by_columns ? column * step + row : row * step + column;
    lanes[lane] = base + element * BitsOf(f.type) / 8;
    at.shift[lane] = static_cast<uint32_t>(element * BitsOf(f.type) % 8);
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
    ElementsAt at;
    if (!ElementAddresses(w, ins, f, index, at)) return;
    ForEachLane(w.exec, [&](int lane) {
      uint64_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const void*>(at.lane[lane]), BytesOf(f.type));
      bits >>= at.shift[lane];
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
    ElementsAt at;
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
      // Only rows whose lanes have given their addresses come here.
      // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
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

// movmatrix: an 8 by 8 matrix of 16-bit elements, held as ldmatrix leaves it, is transposed.
void TransposeRows(Warp& w, const Instruction& ins) {
  if (!GatherLanes(w, kAllLanes)) return;
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  uint32_t result[kLanes] = {};
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      uint32_t element = a[column * 4 + row / 2] >> row % 2 * 16 & 0xffff;
      result[row * 4 + column / 2] |= element << column % 2 * 16;
    }
  }
  std::copy(std::begin(result), std::end(result), w.Reg<uint32_t>(ins.op[0]));
}

constexpr OpEntry kOps[] = {
    {"ldmatrix", nullptr, MoveRows<false, false>},
    {"ldmatrix.trans", nullptr, MoveRows<false, true>},
    {"movmatrix.m8n8.trans.b16", "ii", TransposeRows},
    {"stmatrix", nullptr, MoveRows<true, false>},
    {"stmatrix.trans", nullptr, MoveRows<true, true>},
    {"wmma.load", nullptr, LoadMatrix},
    {"wmma.store", nullptr, StoreMatrix},
};

}  // namespace

std::span<const OpEntry> MatrixMemoryOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
