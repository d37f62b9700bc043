// Textures and surfaces as kernels read and write them: every function that CUDA has for them, and
// the values that lanes get from places of their own.
#include <gtest/gtest.h>

#include <algorithm>

#include "softgpu/engine/test_device.h"
#include "softgpu/engine/texture/texture.h"

namespace softgpu::testing {
namespace {

// An object of device memory: slices of height rows of width texels, of floats unless told.
class Object {
 public:
  Object(uint32_t width, uint32_t height, uint32_t slices, uint32_t channels = 1)
      : texels_(size_t{width} * height * slices * channels) {
    view_->channels = channels;
    view_->addressing.fill(Addressing::kClamp);
    Add(texels_, width, height, slices);
  }
  ~Object() {
    if (number_ != 0) texture_objects::Remove(number_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void Add(const Array<float>& texels, uint32_t width, uint32_t height, uint32_t slices) {
    const uint64_t row = uint64_t{width} * view_->channels * sizeof(float);
    view_->levels.push_back({texels.address(), width, height, slices, row, row * height});
  }
  TextureView& view() { return *view_; }
  Array<float>& texels() { return texels_; }
  uint64_t number() {  // the view is not changed from here on
    if (number_ == 0) number_ = texture_objects::Add(view_);
    return number_;
  }

 private:
  std::shared_ptr<TextureView> view_ = std::make_shared<TextureView>();
  Array<float> texels_;
  uint64_t number_ = 0;
};

class Textures : public ::testing::Test {
 protected:
  Device device_{"sm_90/textures"};
};

TEST_F(Textures, EveryFunctionRuns) {
  Object object(16, 16, 12, 4);
  Array<float> out(512);
  for (const char* name : {"Read_float", "Read_float4", "Read_int2", "Read_uint", "Read_char4",
                           "Read_ushort", "Gather_float4", "Gather_int4", "Gather_uchar4"}) {
    EXPECT_RUNS(device_.Run(name, {1}, {32}, object.number(), out, 0.75f));
  }
}

TEST_F(Textures, EveryAccessToSurfacesRuns) {
  Object object(16, 16, 12, 4);
  auto texel = [&](size_t layer, size_t row) -> float& {
    return object.texels()[(layer * 16 + row) * 16 * 4];
  };
  texel(0, 1) = 1;
  texel(1, 1) = 2;  // of a solid, and of a layer of planes
  texel(3, 1) = 3;  // of a cube's face
  texel(9, 1) = 4;  // of the second cube's
  for (const char* name :
       {"Move_char", "Move_uchar2", "Move_uchar4", "Move_short", "Move_short2", "Move_ushort4",
        "Move_int", "Move_float2", "Move_float4", "Move_longlong1", "Move_ulonglong2"}) {
    EXPECT_RUNS(device_.Run(name, {1}, {1}, object.number(), 0));
  }
  EXPECT_EQ(texel(0, 2), 1);
  EXPECT_EQ(texel(2, 1), 2);
  EXPECT_EQ(texel(4, 1), 3);
  EXPECT_EQ(texel(10, 1), 4);
}

TEST_F(Textures, LanesGetTheValuesOfTheirPlaces) {
  Object cube(1, 1, 12), plane(4, 4, 1, 2), levels(8, 8, 1);
  for (size_t i = 0; i < 12; ++i) cube.texels()[i] = static_cast<float>(i);
  for (size_t i = 0; i < 32; ++i) plane.texels()[i] = static_cast<float>(i / 2 + i % 2 * 16);
  Array<float> second(16, 1.0f), third(4, 2.0f), last(1, 3.0f);
  levels.Add(second, 4, 4, 1);
  levels.Add(third, 2, 2, 1);
  levels.Add(last, 1, 1, 1);
  levels.view().normalized = true;
  levels.view().most_level = 3;
  Array<float> out(128, -1.0f);
  EXPECT_RUNS(
      device_.Run("Values", {1}, {32}, cube.number(), plane.number(), levels.number(), out));
  for (int lane = 0; lane < 32; ++lane) {
    const auto i = static_cast<size_t>(lane);
    const float x = static_cast<float>(lane) / 4 - 4;
    const int face = x < -2 ? 1 : x > 2 ? 0 : 5;  // of two equally long axes z is taken
    EXPECT_EQ(out[i], static_cast<float>(lane % 2 * 6 + face)) << lane;
    auto texel = [&](int column, int row) {
      return static_cast<float>(std::clamp(column, 0, 3) + row * 4 + lane % 2 * 16);
    };
    const int left = (lane + 4) / 8 - 1;  // of what lies half a texel to the left
    EXPECT_EQ(out[32 + i], texel(left, 2) + 10 * texel(left + 1, 2) + 100 * texel(left + 1, 1) +
                               1000 * texel(left, 1))
        << lane;
    EXPECT_EQ(out[64 + i], static_cast<float>(lane % 4)) << lane;
    EXPECT_EQ(out[96 + i], static_cast<float>(lane % 3 != 0)) << lane;
  }
}

}  // namespace
}  // namespace softgpu::testing
