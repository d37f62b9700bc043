// What textures answer, without kernels: formats, addressing and filtering.
#include "softgpu/engine/texture/texture_sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace softgpu {
namespace {

template <class T>
TextureView ViewOf(const std::vector<T>& texels, uint32_t width, Channel channel,
                   uint32_t channels = 1) {
  TextureView view;
  view.channel = channel;
  view.channels = channels;
  view.addressing.fill(Addressing::kClamp);
  const auto rows = static_cast<uint32_t>(texels.size() / width / channels);
  const uint64_t row = uint64_t{width} * channels * sizeof(T);
  view.levels = {{reinterpret_cast<uint64_t>(texels.data()), width, rows, 1, row, row * rows}};
  return view;
}

float At(const TextureView& view, float x, float y = 0, int dims = 1, int channel = 0) {
  Place place;
  place.at = {x, y, 0};
  place.dims = dims;
  return std::bit_cast<float>(Sample(view, place).bits[static_cast<size_t>(channel)]);
}

TEST(Texture, PointsAreTheTexelsThemselves) {
  const std::vector<float> texels = {1, 2, 3, 4, 5, 6};
  TextureView view = ViewOf(texels, 3, Channel::kF32);
  EXPECT_EQ(At(view, 1.99f, 1.2f, 2), 5);
  EXPECT_EQ(At(view, -4, 0.5f, 2), 1);
  EXPECT_EQ(At(view, 99, 99, 2), 6);
  EXPECT_EQ(At(view, NAN, 0, 2), 1);
  EXPECT_EQ(At(view, INFINITY, 0, 2), 3);
}

TEST(Texture, FiltersWithEightBits) {
  const std::vector<float> texels = {0, 256, 0, 0};
  TextureView view = ViewOf(texels, 2, Channel::kF32);
  view.linear = true;
  EXPECT_EQ(At(view, 1, 0.5f, 2), 128);
  EXPECT_EQ(At(view, 0.5f + 1.0f / 512 + 1.0f / 4096, 0.5f, 2), 1);  // rounded
  EXPECT_EQ(At(view, 1, 1, 2), 64);
}

TEST(Texture, AddressesBeyondTheEnds) {
  const std::vector<float> texels = {10, 20, 30, 40};
  TextureView view = ViewOf(texels, 4, Channel::kF32);
  view.normalized = true;
  auto texel = [&](int index) { return At(view, (static_cast<float>(index) + 0.5f) / 4); };
  view.addressing[0] = Addressing::kWrap;
  EXPECT_EQ(texel(-1), 40);
  EXPECT_EQ(texel(9), 20);
  view.addressing[0] = Addressing::kMirror;
  EXPECT_EQ(texel(-1), 10);
  EXPECT_EQ(texel(4), 40);
  EXPECT_EQ(texel(7), 10);
  view.addressing[0] = Addressing::kBorder;
  view.border[0] = -7;
  EXPECT_EQ(texel(4), -7);
  EXPECT_EQ(texel(3), 40);
  view.normalized = false;  // coordinates in texels do not repeat
  view.addressing[0] = Addressing::kWrap;
  EXPECT_EQ(At(view, 5), 40);
}

TEST(Texture, IntegersAreFractionsUnlessAskedFor) {
  const std::vector<uint8_t> bytes = {255, 51};
  TextureView view = ViewOf(bytes, 1, Channel::kU8, 2);
  EXPECT_EQ(At(view, 0), 1);
  EXPECT_FLOAT_EQ(At(view, 0, 0, 1, 1), 0.2f);
  EXPECT_EQ(At(view, 0, 0, 1, 3), 1);  // what the texel does not have
  view.as_integers = true;
  EXPECT_EQ(Sample(view, {}).bits[1], 51u);
  const std::vector<int16_t> words = {-32768, 32767};
  TextureView pair = ViewOf(words, 1, Channel::kS16, 2);
  EXPECT_EQ(At(pair, 0), -1);
  EXPECT_EQ(At(pair, 0, 0, 1, 1), 1);
  pair.as_integers = true;
  EXPECT_EQ(static_cast<int32_t>(Sample(pair, {}).bits[0]), -32768);
}

TEST(Texture, HalvesAndSrgb) {
  const std::vector<uint16_t> halves = {0x3c00, 0xc000, 0x0001, 0x7c00};
  TextureView view = ViewOf(halves, 4, Channel::kF16);
  EXPECT_EQ(At(view, 0), 1);
  EXPECT_EQ(At(view, 1), -2);
  EXPECT_EQ(At(view, 2), std::ldexp(1.0f, -24));
  EXPECT_EQ(At(view, 3), INFINITY);
  const std::vector<uint8_t> bytes = {188};
  TextureView colour = ViewOf(bytes, 1, Channel::kU8);
  colour.srgb = true;
  EXPECT_NEAR(At(colour, 0), 0.5029f, 0.0005f);
}

TEST(Texture, LinearMemoryIsZeroBeyondItsEnd) {
  const std::vector<uint32_t> words = {7, 8};
  TextureView view = ViewOf(words, 2, Channel::kU32);
  view.linear_memory = true;
  Place place;
  place.exact = true;
  place.whole[0] = 1;
  EXPECT_EQ(Sample(view, place).bits[0], 8u);
  place.whole[0] = 2;
  EXPECT_EQ(Sample(view, place).bits[0], 0u);
}

TEST(Texture, LayersAreNotFiltered) {
  const std::vector<float> texels = {1, 2, 3, 4};
  TextureView view = ViewOf(texels, 2, Channel::kF32);
  view.levels[0].height = 1;
  view.levels[0].depth = 2;
  view.levels[0].slice_bytes = 2 * sizeof(float);
  view.linear = true;
  Place place;
  place.at[0] = 1;
  place.layered = true;
  place.layer = 1;
  EXPECT_EQ(std::bit_cast<float>(Sample(view, place).bits[0]), 3.5f);
  place.layer = 99;
  EXPECT_EQ(std::bit_cast<float>(Sample(view, place).bits[0]), 3.5f);
}

}  // namespace
}  // namespace softgpu
