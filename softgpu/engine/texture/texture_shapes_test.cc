// Cube maps, gathered texels and the levels that gradients ask for, without kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "softgpu/engine/texture/texture_cube.h"
#include "softgpu/engine/texture/texture_sample.h"

namespace softgpu {
namespace {

using Direction = std::array<float, 3>;

TextureView ViewOf(const std::vector<float>& texels, uint32_t width, uint32_t height,
                   uint32_t channels = 1) {
  TextureView view;
  view.channels = channels;
  view.addressing.fill(Addressing::kClamp);
  const uint64_t row = uint64_t{width} * channels * sizeof(float), slice = row * height;
  const auto slices = static_cast<uint32_t>(texels.size() * sizeof(float) / slice);
  view.levels = {{reinterpret_cast<uint64_t>(texels.data()), width, height, slices, row, slice}};
  return view;
}

// Each texel says where it is: layer, row and column.
std::vector<float> Numbered(uint32_t size, uint32_t layers) {
  std::vector<float> texels;
  for (uint32_t i = 0; i < size * size * layers; ++i) {
    const uint32_t layer = i / size / size, row = i / size % size;
    texels.push_back(static_cast<float>(layer * 100 + row * 10 + i % size));
  }
  return texels;
}

// Each face is of one colour.
std::vector<float> Coloured(uint32_t size, const std::array<float, 6>& colours) {
  std::vector<float> texels;
  for (float colour : colours) texels.insert(texels.end(), size * size, colour);
  return texels;
}

float AtDirection(const TextureView& view, Direction direction, int layer = -1, float level = 0) {
  Place place;
  place.at = direction;
  place.cube = true;
  place.dims = 3;
  place.layered = layer >= 0;
  place.layer = static_cast<uint32_t>(layer);
  place.level = level;
  return std::bit_cast<float>(Sample(view, place).bits[0]);
}

// As the programming guide's table of faces has it, the other way round.
Direction DirectionOf(uint32_t face, float s, float t) {
  const Direction directions[] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                  {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
  return directions[face];
}

TEST(Cube, DirectionsMeetEveryTexelOfEveryFace) {
  constexpr uint32_t kSize = 4;
  const std::vector<float> texels = Numbered(kSize, 12);
  const TextureView view = ViewOf(texels, kSize, kSize);
  for (uint32_t i = 0; i < kSize * kSize * 6; ++i) {
    const uint32_t face = i / 16, y = i / 4 % 4, x = i % 4;
    const float s = (static_cast<float>(x) + 0.5f) / 2 - 1;
    const float t = (static_cast<float>(y) + 0.5f) / 2 - 1;
    Direction direction = DirectionOf(face, s, t);
    for (float& part : direction) part *= 7.5f;  // its length says nothing
    EXPECT_EQ(AtDirection(view, direction), static_cast<float>(face * 100 + y * 10 + x));
    EXPECT_EQ(AtDirection(view, direction, 1), static_cast<float>(face * 100 + 600 + y * 10 + x));
    EXPECT_EQ(AtDirection(view, direction, 7), AtDirection(view, direction, 1));
  }
}

TEST(Cube, FiltersWithinAFace) {
  const std::vector<float> texels = Numbered(2, 6);
  TextureView view = ViewOf(texels, 2, 2);
  view.linear = true;
  EXPECT_EQ(AtDirection(view, {0, 0, 3}), 405.5f);                             // of all four
  EXPECT_EQ(AtDirection(view, DirectionOf(1, 0, -0.5f)), 100.5f);              // two of a row
  EXPECT_EQ(AtDirection(view, DirectionOf(3, 0.99f, 0.99f)), 311.0f);          // clamped
  EXPECT_NEAR(AtDirection(view, DirectionOf(3, -0.5f, 0.25f)), 307.5f, 0.01);  // three quarters
  view.addressing.fill(Addressing::kWrap);  // for coordinates from 0 to 1, which a face has
  EXPECT_NEAR(AtDirection(view, DirectionOf(5, -0.999f, -0.5f)), 500.5f, 0.01);
}

TEST(Cube, FiltersAcrossEdgesIfSeamless) {
  const std::vector<float> texels = Coloured(4, {0, 8, 16, 24, 32, 40});
  TextureView view = ViewOf(texels, 4, 4);
  view.linear = view.seamless = true;
  EXPECT_NEAR(AtDirection(view, {1, 0, -0.9999f}), 20, 0.05);
  EXPECT_NEAR(AtDirection(view, {1, 0, -0.75f}), 0, 0.05);  // the middle of the last texel
  EXPECT_NEAR(AtDirection(view, {-0.9999f, -1, 0}), 16, 0.05);
  EXPECT_NEAR(AtDirection(view, {1, 0.99999f, 0.99999f}), (0 + 16 + 32) / 3.0, 0.1);
  view.seamless = false;
  EXPECT_EQ(AtDirection(view, {1, 0, -0.9999f}), 0);
}

TEST(Cube, EdgesLeadToTheNeighbourAndBack) {
  constexpr int64_t kSize = 5;
  auto crossed = [](uint32_t face, int64_t x, int64_t y) {
    CrossEdge(kSize, &face, &x, &y);
    return std::array<int64_t, 3>{face, x, y};
  };
  using Texel3 = std::array<int64_t, 3>;
  EXPECT_EQ(crossed(0, kSize, 3), (Texel3{5, 0, 3}));  // +x and -z have their rows in common
  EXPECT_EQ(crossed(2, 1, -1), (Texel3{5, 3, 0}));     // from the top to -z, upside down
  EXPECT_EQ(crossed(0, 1, -1), (Texel3{2, 4, 3}));     // a row becomes a column
  EXPECT_EQ(crossed(4, 2, kSize), (Texel3{3, 2, 0}));  // from the front to the bottom
  EXPECT_EQ(crossed(1, -1, kSize - 1), (Texel3{5, 4, 4}));
  for (uint32_t face = 0; face < kFaces; ++face) {
    for (int64_t i = 0; i < kSize; ++i) {
      const Texel3 beyond[] = {{face, -1, i}, {face, kSize, i}, {face, i, -1}, {face, i, kSize}};
      for (const Texel3& from : beyond) {
        const Texel3 to = crossed(face, from[1], from[2]);
        int back = 0;  // the neighbour has one edge, or of a corner's texel one of two, that leads
        for (auto [x, y] :
             {std::array<int64_t, 2>{-1, to[2]}, {kSize, to[2]}, {to[1], -1}, {to[1], kSize}}) {
          const Texel3 again = crossed(static_cast<uint32_t>(to[0]), x, y);
          const int64_t inside =
              std::max<int64_t>(std::abs(again[1] - from[1]), std::abs(again[2] - from[2]));
          back += again[0] == face && inside == 1;
        }
        EXPECT_EQ(back, 1) << face << " " << from[1] << " " << from[2];
      }
    }
  }
}

TEST(Cube, HasLevels) {
  const std::vector<float> large = Coloured(4, {1, 2, 3, 4, 5, 6});
  const std::vector<float> small = Coloured(2, {11, 12, 13, 14, 15, 16});
  TextureView view = ViewOf(large, 4, 4);
  view.levels.push_back(ViewOf(small, 2, 2).levels[0]);
  view.most_level = 1;
  view.mip_linear = true;
  EXPECT_EQ(AtDirection(view, {0, -2, 1}, -1, 0), 4);
  EXPECT_EQ(AtDirection(view, {0, -2, 1}, -1, 1), 14);
  EXPECT_EQ(AtDirection(view, {0, -2, 1}, -1, 0.5f), 9);
}

std::array<float, 4> GatherAt(const TextureView& view, float x, float y, uint32_t channel = 0) {
  Place place;
  place.at = {x, y, 0};
  place.dims = 2;
  std::array<float, 4> values{};
  const Texel texel = Gather(view, place, channel);
  for (size_t i = 0; i < 4; ++i) values[i] = std::bit_cast<float>(texel.bits[i]);
  return values;
}

TEST(Gather, TakesTheFourTexelsAround) {
  const std::vector<float> texels = Numbered(4, 1);
  TextureView view = ViewOf(texels, 4, 4);
  using Four = std::array<float, 4>;
  EXPECT_EQ(GatherAt(view, 2, 1), (Four{11, 12, 2, 1}));
  EXPECT_EQ(GatherAt(view, 2.4f, 2.6f), (Four{31, 32, 22, 21}));
  EXPECT_EQ(GatherAt(view, 0, 0), (Four{0, 0, 0, 0}));
  EXPECT_EQ(GatherAt(view, 4, 4), (Four{33, 33, 33, 33}));
  // So near to a texel's middle that eight bits do not tell it from there.
  EXPECT_EQ(GatherAt(view, 1.499f, 1), (Four{11, 12, 2, 1}));
  EXPECT_EQ(GatherAt(view, 1.49f, 1), (Four{10, 11, 1, 0}));
  EXPECT_EQ(GatherAt(view, 2, 1, 3), (Four{1, 1, 1, 1}));  // the alpha that it does not have
  view.addressing.fill(Addressing::kBorder);
  view.border.fill(-7);
  EXPECT_EQ(GatherAt(view, 4, 1), (Four{13, -7, -7, 3}));
  view.normalized = true;
  view.addressing.fill(Addressing::kWrap);
  EXPECT_EQ(GatherAt(view, 0, 0.25f), (Four{13, 10, 0, 3}));
}

TEST(Gather, TakesOneChannel) {
  const std::vector<float> texels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const TextureView view = ViewOf(texels, 2, 2, 4);
  using Four = std::array<float, 4>;
  EXPECT_EQ(GatherAt(view, 1, 1, 0), (Four{9, 13, 5, 1}));
  EXPECT_EQ(GatherAt(view, 1, 1, 2), (Four{11, 15, 7, 3}));
}

TEST(Gather, StaysInItsLayer) {
  const std::vector<float> texels = Numbered(2, 3);
  const TextureView view = ViewOf(texels, 2, 2);
  Place place;
  place.at = {1, 1, 0};
  place.dims = 2;
  place.layered = true;
  place.layer = 1;
  EXPECT_EQ(std::bit_cast<float>(Gather(view, place, 0).bits[1]), 111);
  place.layer = 9;
  EXPECT_EQ(std::bit_cast<float>(Gather(view, place, 0).bits[3]), 200);
}

TEST(Gradients, AskForALevel) {
  const std::vector<float> texels(64 * 32);
  TextureView view = ViewOf(texels, 64, 32);
  view.normalized = true;
  Place place;
  place.dims = 2;
  EXPECT_EQ(LevelOf(view, place, {1.0f / 16, 0, 9}, {0, 1.0f / 32, 9}), 2);  // 4 texels and 1
  EXPECT_EQ(LevelOf(view, place, {0, 0, 0}, {0, 0.25f, 0}), 3);
  EXPECT_FLOAT_EQ(LevelOf(view, place, {3.0f / 64, 4.0f / 32, 0}, {}), std::log2(5.0f));
  EXPECT_EQ(LevelOf(view, place, {}, {}), -INFINITY);
  place.dims = 1;
  EXPECT_EQ(LevelOf(view, place, {0.5f, 9, 9}, {0.25f, 9, 9}), 5);
  view.normalized = false;
  EXPECT_EQ(LevelOf(view, place, {8, 0, 0}, {}), 3);
}

TEST(Gradients, OfDirectionsAreThoseInTheFace) {
  const std::vector<float> texels(6 * 64 * 64);
  const TextureView view = ViewOf(texels, 64, 64);
  Place place;
  place.cube = true;
  place.dims = 3;
  place.at = {1, 0, 0};
  EXPECT_EQ(LevelOf(view, place, {0, 0, 1.0f / 8}, {0, 1.0f / 32, 0}), 2);  // half of it, of 64
  EXPECT_EQ(LevelOf(view, place, {0.5f, 0, 0}, {}), -INFINITY);
  place.at = {0, -4, 2};
  EXPECT_EQ(LevelOf(view, place, {0, -2, 1}, {}), -INFINITY);  // along the direction
  EXPECT_EQ(LevelOf(view, place, {}, {0.25f, 0, 0}), 1);
}

TEST(Gradients, ThatAreZeroTakeTheFinestLevel) {
  const std::vector<float> large = Numbered(2, 1), small = {50};
  TextureView view = ViewOf(large, 2, 2);
  view.levels.push_back(ViewOf(small, 1, 1).levels[0]);
  view.most_level = 1;
  Place place;
  place.level = -INFINITY;
  EXPECT_EQ(std::bit_cast<float>(Sample(view, place).bits[0]), 0);
}

}  // namespace
}  // namespace softgpu
