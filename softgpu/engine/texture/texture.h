// What textures and surfaces are made of, for kernels that read them by a texture object's number
// or by a reference that the module names and the launch binds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu {

enum class Channel : uint8_t { kU8, kU16, kU32, kS8, kS16, kS32, kF16, kF32 };
enum class Addressing : uint8_t { kWrap, kClamp, kMirror, kBorder };  // numbered as CUaddress_mode

// Texels in device memory: rows of row_bytes, slices (or layers) of slice_bytes.
struct Texels {
  uint64_t address = 0;
  uint32_t width = 1, height = 1, depth = 1;  // texels, rows, slices
  uint64_t row_bytes = 0, slice_bytes = 0;
};

struct TextureView {
  std::vector<Texels> levels;  // at least one; more of a mipmapped array
  Channel channel = Channel::kF32;
  uint32_t channels = 1;
  std::array<Addressing, 3> addressing{};
  bool linear = false;         // filters between texels
  bool linear_memory = false;  // one row of any length, zero beyond its end
  bool normalized = false;     // coordinates from 0 to 1
  bool as_integers = false;    // integers of 8 and 16 bits stay what they are
  bool srgb = false;
  bool mip_linear = false;
  bool seamless = false;  // filters across the edges of a cube's faces
  float bias = 0, least_level = 0, most_level = 0;
  std::array<float, 4> border{};
  std::shared_ptr<const void> memory;  // what must not go before the view does

  uint32_t texel_bytes() const;
  bool returns_floats() const;
};

// The objects of all devices, by the numbers that kernels hold.
namespace texture_objects {
uint64_t Add(std::shared_ptr<const TextureView> view);
bool Remove(uint64_t object);
std::shared_ptr<const TextureView> Find(uint64_t object);
}  // namespace texture_objects

// The value of a reference's name: this plus its number in the module. No object has such a number.
constexpr uint64_t kReferenceBase = 0x4c58000000000000;
constexpr uint64_t kMaxReferences = 1 << 12;  // of one module

// One texel or a blend of several, as bits of floats or integers by returns_floats().
struct Texel {
  std::array<uint32_t, 4> bits{};
};
struct Place {
  std::array<float, 3> at{};       // used unless `exact`; of a cube: a direction
  std::array<int32_t, 3> whole{};  // texels, not filtered
  bool exact = false;
  uint32_t layer = 0;
  bool layered = false;
  bool cube = false;  // layers hold six faces each
  int dims = 1;
  float level = 0;
};

}  // namespace softgpu
