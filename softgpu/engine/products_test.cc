// mma and mma.sp of every shape and type against products by three loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "softgpu/engine/test_device.h"
#include "softgpu/engine/test_product.h"

namespace softgpu::testing {
namespace {

using Values = std::vector<int>;  // of a matrix, row by row

struct Case {
  uint32_t m, n, k;
  // Of d, a, b and c, which is how mma's name ends.
  std::array<std::string_view, 4> types;
  std::string_view end = {};  // of the name, behind the types
};

// clang-format off
constexpr Case kDense[] = {
    {8, 8, 4, {"f64", "f64", "f64", "f64"}},
    {8, 8, 16, {"s32", "s8", "s8", "s32"}},
    {8, 8, 16, {"s32", "u8", "s8", "s32"}},
    {8, 8, 32, {"s32", "s4", "s4", "s32"}},
    {8, 8, 32, {"s32", "u4", "s4", "s32"}},
    {8, 8, 128, {"s32", "b1", "b1", "s32"}, ".and.popc"},
    {8, 8, 128, {"s32", "b1", "b1", "s32"}, ".xor.popc"},
    {16, 8, 4, {"f32", "tf32", "tf32", "f32"}},
    {16, 8, 4, {"f64", "f64", "f64", "f64"}},
    {16, 8, 8, {"f16", "f16", "f16", "f16"}},
    {16, 8, 8, {"f32", "bf16", "bf16", "f32"}},
    {16, 8, 8, {"f32", "f16", "f16", "f32"}},
    {16, 8, 8, {"f32", "tf32", "tf32", "f32"}},
    {16, 8, 8, {"f64", "f64", "f64", "f64"}},
    {16, 8, 16, {"f16", "e4m3", "e5m2", "f16"}},
    {16, 8, 16, {"f16", "f16", "f16", "f16"}},
    {16, 8, 16, {"f32", "bf16", "bf16", "f32"}},
    {16, 8, 16, {"f32", "e5m2", "e4m3", "f32"}},
    {16, 8, 16, {"f32", "f16", "f16", "f32"}},
    {16, 8, 16, {"f64", "f64", "f64", "f64"}},
    {16, 8, 16, {"s32", "s8", "u8", "s32"}},
    {16, 8, 16, {"s32", "u8", "u8", "s32"}},
    {16, 8, 32, {"f16", "e4m3", "e4m3", "f16"}},
    {16, 8, 32, {"f32", "e4m3", "e4m3", "f32"}},
    {16, 8, 32, {"f32", "e4m3", "e5m2", "f32"}},
    {16, 8, 32, {"f32", "e5m2", "e4m3", "f32"}},
    {16, 8, 32, {"f32", "e5m2", "e5m2", "f32"}},
    {16, 8, 32, {"s32", "s4", "u4", "s32"}},
    {16, 8, 32, {"s32", "s8", "s8", "s32"}},
    {16, 8, 32, {"s32", "u4", "u4", "s32"}},
    {16, 8, 32, {"s32", "u8", "s8", "s32"}},
    {16, 8, 64, {"s32", "s4", "s4", "s32"}},
    {16, 8, 64, {"s32", "u4", "s4", "s32"}},
    {16, 8, 128, {"s32", "b1", "b1", "s32"}, ".and.popc"},
    {16, 8, 128, {"s32", "b1", "b1", "s32"}, ".xor.popc"},
    {16, 8, 256, {"s32", "b1", "b1", "s32"}, ".and.popc"},
    {16, 8, 256, {"s32", "b1", "b1", "s32"}, ".xor.popc"},
};

constexpr Case kSparse[] = {
    {16, 8, 8, {"f32", "tf32", "tf32", "f32"}},
    {16, 8, 16, {"f16", "f16", "f16", "f16"}},
    {16, 8, 16, {"f32", "bf16", "bf16", "f32"}},
    {16, 8, 16, {"f32", "f16", "f16", "f32"}},
    {16, 8, 16, {"f32", "tf32", "tf32", "f32"}},
    {16, 8, 32, {"f16", "f16", "f16", "f16"}},
    {16, 8, 32, {"f32", "bf16", "bf16", "f32"}},
    {16, 8, 32, {"f32", "f16", "f16", "f32"}},
    {16, 8, 32, {"s32", "s8", "u8", "s32"}},
    {16, 8, 32, {"s32", "u8", "u8", "s32"}},
    {16, 8, 64, {"f32", "e4m3", "e5m2", "f32"}},
    {16, 8, 64, {"f32", "e5m2", "e5m2", "f32"}},
    {16, 8, 64, {"s32", "s4", "s4", "s32"}},
    {16, 8, 64, {"s32", "s8", "s8", "s32"}},
    {16, 8, 64, {"s32", "u4", "s4", "s32"}},
    {16, 8, 128, {"s32", "s4", "u4", "s32"}},
    {16, 8, 128, {"s32", "u4", "u4", "s32"}},
};
// clang-format on

Values MakeValues(const Element& element, uint32_t count, uint32_t seed) {
  Values values(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t number = (i + seed) * 2654435761u >> 16;
    auto range = static_cast<uint32_t>(element.most - element.least + 1);
    values[i] = element.least + static_cast<int>(number % range);
  }
  return values;
}

// d of one product, with the operation on bits where the name has one.
Values Expect(const Case& c, const Values& a, const Values& b, const Values& sum) {
  Values d = sum;
  for (uint32_t row = 0; row < c.m; ++row) {
    for (uint32_t column = 0; column < c.n; ++column) {
      for (uint32_t k = 0; k < c.k; ++k) {
        int x = a[row * c.k + k];
        int y = b[k * c.n + column];
        d[row * c.n + column] += c.end == ".xor.popc" ? x ^ y : x * y;
      }
    }
  }
  return d;
}

std::string NameOf(const char* opcode, const Case& c, const std::string& layouts = ".row.col") {
  std::string name = opcode;
  name += ".m" + std::to_string(c.m) + "n" + std::to_string(c.n) + "k" + std::to_string(c.k);
  name += layouts;
  for (std::string_view type : c.types) name += "." + std::string(type);
  return name + std::string(c.end);
}

// Groups of four lanes share a row of a (or of d) or a column of b.
Place PlaceOfA(const Case& c, uint32_t each, uint32_t row, uint32_t k) {
  uint32_t number = k / (each * 4) * (c.m / 8) + row / 8;
  return {row % 8 * 4 + k / each % 4, number * each + k % each};
}
Place PlaceOfB(uint32_t each, uint32_t k, uint32_t column) {
  return {column * 4 + k / each % 4, k / (each * 4) * each + k % each};
}
Place PlaceOfSum(uint32_t row, uint32_t column) {
  return {row % 8 * 4 + column / 2, row / 8 * 2 + column % 2};
}

uint32_t EachOf(const Element& element) { return std::max(32 / element.bits, 1u); }

class Products : public ::testing::Test {
 protected:
  void Prepare(const Case& c, uint32_t columns_of_a, uint32_t count = 1) {
    a = Registers(FindElement(c.types[1]), count * c.m * columns_of_a / 32);
    b = Registers(FindElement(c.types[2]), count * c.k * c.n / 32);
    sum = Registers(FindElement(c.types[3]), count * c.m * c.n / 32);
    d = Registers(FindElement(c.types[0]), count * c.m * c.n / 32);
    metadata.assign(32, 0);
  }

  void PlaceInGroups(const Case& c, const Values& of_b, const Values& of_sum) {
    for (uint32_t i = 0; i < of_b.size(); ++i) {
      b.Set(PlaceOfB(EachOf(b.element()), i / c.n, i % c.n), of_b[i]);
    }
    for (uint32_t i = 0; i < of_sum.size(); ++i) sum.Set(PlaceOfSum(i / c.n, i % c.n), of_sum[i]);
  }

  void Run(const std::string& instruction, const std::string& selector = "") {
    Status status;
    std::string text = ProductKernel(instruction, a, b, sum, d, selector);
    auto program = Program::Load(text, TestMemory::Get(), &status);
    ASSERT_NE(program, nullptr) << status.message;
    Array<uint64_t> in(16 * 32), out(8 * 32);
    uint64_t* to = in.data();
    for (const auto& words : {a.words(), b.words(), sum.words(), metadata}) {
      to = std::copy(words.begin(), words.end(), to);
    }
    EXPECT_RUNS(Device(std::move(program)).Run("product", {1}, {32}, in, out));
    std::copy_n(out.data(), d.words().size(), d.words().begin());
  }

  void ExpectGroups(const std::string& name, const Case& c, const Values& expected) {
    for (uint32_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(d.Get(PlaceOfSum(i / c.n, i % c.n)), expected[i]) << name << " element " << i;
    }
  }

  static inline const Element& kNone = FindElement("s32");
  Registers a{kNone, 0}, b{kNone, 0}, sum{kNone, 0}, d{kNone, 0};
  std::vector<uint64_t> metadata;
};

TEST_F(Products, OfDenseMatrices) {
  for (const Case& c : kDense) {
    Prepare(c, c.k);
    Values of_a = MakeValues(a.element(), c.m * c.k, 1);
    Values of_b = MakeValues(b.element(), c.k * c.n, 2);
    Values of_sum = MakeValues(sum.element(), c.m * c.n, 3);
    for (uint32_t i = 0; i < of_a.size(); ++i) {
      a.Set(PlaceOfA(c, EachOf(a.element()), i / c.k, i % c.k), of_a[i]);
    }
    PlaceInGroups(c, of_b, of_sum);
    std::string name = NameOf("mma.sync.aligned", c);
    Run(name);
    ExpectGroups(name, c, Expect(c, of_a, of_b, of_sum));
  }
}

// Which of a row's elements are there: of every chunk of `units` units (4-bit types: pairs) half.
struct Sparsity {
  explicit Sparsity(const Element& element)
      : unit(element.bits == 4 ? 2 : 1),
        units(element.bits == 32 ? 2 : 4),
        small(element.bits < 16) {}
  uint32_t chunk() const { return unit * units; }

  // Two units of four, or one of two, another choice for every chunk.
  std::vector<uint32_t> Choose(uint32_t row, uint32_t number) const {
    if (units == 2) return {(row * 3 + number) % 2};
    static const std::vector<uint32_t> kChoices[] = {{0, 1}, {0, 2}, {0, 3},
                                                     {1, 2}, {1, 3}, {2, 3}};
    return kChoices[(row * 5 + number) % 6];
  }
  // A unit of tf32 is two halves, which are numbered.
  uint32_t BitsOf(const std::vector<uint32_t>& choice) const {
    if (units == 2) return choice[0] == 0 ? 0b0100 : 0b1110;
    return choice[0] | choice[1] << 2;
  }
  uint32_t Lanes(uint32_t k) const { return k / chunk() / 4; }
  // Four bits of a lane's metadata for each chunk.
  Place PlaceOf(uint32_t row, uint32_t number) const {
    if (small) return {row % 8 * 4 + number / 8 * 2 + row / 8, number % 8};
    return {row % 8 * 4 + number / 4, row / 8 * 4 + number % 4};
  }

  uint32_t unit, units;
  bool small;
};

TEST_F(Products, OfSparseMatrices) {
  for (const Case& c : kSparse) {
    Sparsity sparsity(FindElement(c.types[1]));
    for (uint32_t selector = 0; selector < 4 / sparsity.Lanes(c.k); ++selector) {
      Prepare(c, c.k / 2);
      Values packed = MakeValues(a.element(), c.m * c.k / 2, 1);
      Values of_a(c.m * c.k);
      Values of_b = MakeValues(b.element(), c.k * c.n, 2);
      Values of_sum = MakeValues(sum.element(), c.m * c.n, 3);
      for (uint32_t i = 0; i < packed.size(); ++i) {
        uint32_t row = i / (c.k / 2);
        uint32_t column = i % (c.k / 2);
        uint32_t number = column / (sparsity.chunk() / 2);
        std::vector<uint32_t> choice = sparsity.Choose(row, number);
        uint32_t within = column % (sparsity.chunk() / 2);
        uint32_t unit = choice[within / sparsity.unit] * sparsity.unit + within % sparsity.unit;
        of_a[row * c.k + number * sparsity.chunk() + unit] = packed[i];
        a.Set(PlaceOfA(c, EachOf(a.element()), row, column), packed[i]);
        Place place = sparsity.PlaceOf(row, number);
        metadata[place.lane + selector * sparsity.Lanes(c.k)] |= uint64_t{sparsity.BitsOf(choice)}
                                                                 << place.index * 4;
      }
      PlaceInGroups(c, of_b, of_sum);
      const char* opcode =
          selector == 0 ? "mma.sp.sync.aligned" : "mma.sp::ordered_metadata.sync.aligned";
      std::string name = NameOf(opcode, c);
      Run(name, std::to_string(selector));
      ExpectGroups(name, c, Expect(c, of_a, of_b, of_sum));
    }
  }
}

// mma.m8n8k4 of halves: lanes 4 * i to 4 * i + 3 and those 16 further on have product i.
Place InQuad(uint32_t quad, uint32_t lane, bool upper, uint32_t index) {
  return {quad * 4 + lane + (upper ? 16 : 0), index};
}
Place PlaceOfQuadSum(uint32_t quad, bool single, uint32_t row, uint32_t column) {
  if (!single) return InQuad(quad, row % 4, row >= 4, column);
  return InQuad(quad, row % 2 + (column & 2), row >= 4, (row & 2) + (column & 4) + column % 2);
}

TEST_F(Products, OfFourPairsOfHalfMatrices) {
  for (int way = 0; way < 16; ++way) {
    std::string_view d_type = (way & 1) != 0 ? "f32" : "f16";
    Case c{8, 8, 4, {d_type, "f16", "f16", (way & 2) != 0 ? "f32" : "f16"}};
    if (c.types[0] == "f16" && c.types[3] == "f32") continue;  // PTX has no such product
    bool a_by_columns = (way & 4) != 0;
    bool b_by_columns = (way & 8) != 0;
    Prepare(c, c.k, 4);
    std::vector<Values> expected;
    for (uint32_t quad = 0; quad < 4; ++quad) {
      Values of_a = MakeValues(a.element(), 32, quad * 3 + 1);
      Values of_b = MakeValues(b.element(), 32, quad * 3 + 2);
      Values of_sum = MakeValues(sum.element(), 64, quad * 3 + 3);
      for (uint32_t i = 0; i < 32; ++i) {
        uint32_t row = i / 4, of = i % 4, k = i / 8, column = i % 8;
        a.Set(a_by_columns ? InQuad(quad, of, row >= 4, row % 4)
                           : InQuad(quad, row % 4, row >= 4, of),
              of_a[i]);
        b.Set(b_by_columns ? InQuad(quad, column % 4, column >= 4, k)
                           : InQuad(quad, k, column >= 4, column % 4),
              of_b[i]);
      }
      for (uint32_t i = 0; i < 64; ++i) {
        sum.Set(PlaceOfQuadSum(quad, c.types[3] == "f32", i / 8, i % 8), of_sum[i]);
      }
      expected.push_back(Expect(c, of_a, of_b, of_sum));
    }
    std::string name =
        NameOf("mma.sync.aligned", c,
               std::string(a_by_columns ? ".col" : ".row") + (b_by_columns ? ".col" : ".row"));
    Run(name);
    for (uint32_t i = 0; i < 256; ++i) {
      Place place = PlaceOfQuadSum(i / 64, d_type == "f32", i / 8 % 8, i % 8);
      ASSERT_EQ(d.Get(place), expected[i / 64][i % 64]) << name << " element " << i;
    }
  }
}

// Beyond the largest integer sums stop or wrap around.
TEST_F(Products, SumsOfIntegersStopAtTheirEnds) {
  for (std::string_view type : {"s4", "s8"}) {
    Case c{16, 8, 32, {"s32", type, type, "s32"}};
    Prepare(c, c.k);
    std::fill(a.words().begin(), a.words().end(), 0x77777777);
    std::fill(b.words().begin(), b.words().end(), 0x77777777);
    std::fill(sum.words().begin(), sum.words().end(), 0x7fffffff);
    std::string name = NameOf("mma.sync.aligned", c);
    Run(name);
    EXPECT_LT(d.Get({0, 0}), 0) << name;
    Run(NameOf("mma.sync.aligned", c, ".row.col.satfinite"));
    EXPECT_EQ(d.Get({0, 0}), 0x7fffffff) << name;
  }
}

TEST_F(Products, OthersAreRefused) {
  for (const Case& c : {Case{16, 8, 16, {"bf16", "bf16", "bf16", "bf16"}},
                        Case{16, 8, 64, {"f32", "f16", "f16", "f32"}},
                        Case{64, 64, 64, {"f32", "f16", "f16", "f32"}}}) {
    Prepare(c, c.k);
    Status status;
    std::string name = NameOf("mma.sync.aligned", c);
    auto program = Program::Load(ProductKernel(name, a, b, sum, d, ""), TestMemory::Get(), &status);
    ASSERT_NE(program, nullptr) << status.message;
    Array<uint64_t> in(64), out(64);
    status = Device(std::move(program)).Run("product", {1}, {32}, in, out);
    EXPECT_NE(status.message.find("does not know " + name), std::string::npos) << status.message;
  }
}

}  // namespace
}  // namespace softgpu::testing
