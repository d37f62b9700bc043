// Products of small matrices by a warp: wmma and mma.
#include <array>

#include "softgpu/engine/ops/fragment.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

using Values = std::array<double, kMaxElements>;

void Read(const Warp& w, const Fragment& f, Values& values) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < f.Elements(); ++i) {
      values[PlaceOf(f, lane, i)] = ToDouble(f.type, GetBits(w, f, lane, i));
    }
  }
}

// The four bits of metadata for a chunk of a row. Of every group of four lanes some have them, for
// row `group` and the one eight further down: types of 16 bits and more have both rows' next four
// chunks in one lane, smaller types eight chunks in a lane for each row.
uint32_t ChunkBits(const Warp& w, const MatrixSite& site, uint32_t row, uint32_t chunk) {
  const auto* metadata = w.Reg<uint32_t>(site.metadata) + row % 8 * 4 + site.first_lane;
  uint32_t lower = row / 8;
  if (BitsOf(site.a.type) >= 16) return metadata[chunk / 4] >> (lower * 16 + chunk % 4 * 4) & 15;
  return metadata[chunk / 8 * 2 + lower] >> chunk % 8 * 4 & 15;
}

// Where in its chunk the `index`-th of the elements that are there belongs. Two 2-bit numbers count
// elements, of 4-bit types pairs of them, and of tf32, which has one element, halves of it.
uint32_t PlaceInChunk(MatrixType type, uint32_t bits, uint32_t index) {
  if (BitsOf(type) == 32) return bits >> 1 & 1;
  if (BitsOf(type) > 4) return bits >> index * 2 & 3;
  return (bits >> index / 2 * 2 & 3) * 2 + index % 2;
}

// Fills a with the elements of `packed` at their places and zeros between them.
void Spread(const Warp& w, const MatrixSite& site, const Values& packed, Values& a) {
  const Fragment& f = site.a;
  const uint32_t kept = BitsOf(f.type) == 32 ? 1 : BitsOf(f.type) == 4 ? 4 : 2;  // of a chunk
  std::fill_n(a.begin(), f.rows * f.columns * 2, 0);
  for (uint32_t i = 0; i < f.rows * f.columns; ++i) {
    uint32_t row = i / f.columns;
    uint32_t chunk = i % f.columns / kept;
    uint32_t bits = ChunkBits(w, site, row, chunk);
    a[row * f.columns * 2 + chunk * kept * 2 + PlaceInChunk(f.type, bits, i % kept)] = packed[i];
  }
}

void ReadFactors(const Warp& w, const MatrixSite& site, Values& a, Values& b) {
  Read(w, site.b, b);
  if (!site.sparse) return Read(w, site.a, a);
  Values packed;
  Read(w, site.a, packed);
  Spread(w, site, packed, a);
}

// One product. Bits, too, are multiplied and summed up; a xor b is a + b - 2ab. Only of doubles is
// a product not exact: it is added before anything is rounded.
void AddProduct(const MatrixSite& site, const double* a, const double* b, double* sum) {
  const uint32_t columns = site.b.columns;
  const uint32_t depth = site.b.rows / site.products;
  for (uint32_t row = 0; row < site.c.rows / site.products; ++row) {
    double* to = sum + row * columns;
    for (uint32_t k = 0; k < depth; ++k) {
      double factor = a[row * depth + k];
      double once = site.exclusive ? factor : 0;
      double slope = site.exclusive ? 1 - 2 * factor : factor;
      for (uint32_t n = 0; n < columns; ++n) {
        to[n] = std::fma(slope, b[k * columns + n], to[n] + once);
      }
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
  ReadFactors(w, site, a, b);
  Read(w, site.c, sum);
  const uint32_t depth = site.b.rows / site.products;
  const uint32_t rows = site.c.rows / site.products;
  for (uint32_t i = 0; i < site.products; ++i) {
    AddProduct(site, a.data() + i * rows * depth, b.data() + i * depth * site.b.columns,
               sum.data() + i * rows * site.b.columns);
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < site.d.Elements(); ++i) {
      double value = sum[PlaceOf(site.d, lane, i)];
      SetBits(w, site.d, lane, i, FromDouble(site.d.type, value, site.clamps));
    }
  }
}

constexpr OpEntry kOps[] = {
    {"mma", nullptr, Multiply},
};

}  // namespace

std::span<const OpEntry> MatrixOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
