#include "softgpu/engine/texture/texture_fetch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace softgpu {
namespace {

uint32_t ChannelBytes(Channel channel) {
  switch (channel) {
    case Channel::kU8:
    case Channel::kS8:
      return 1;
    case Channel::kU16:
    case Channel::kS16:
    case Channel::kF16:
      return 2;
    default:
      return 4;
  }
}

template <class T>
T Read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

float FromSrgb(float value) {
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

// Integers, or what stands for them between 0 and 1 (-1 and 1 of signed ones).
uint32_t Decode(const TextureView& view, const std::byte* at, uint32_t index) {
  auto fraction = [](float value) { return std::bit_cast<uint32_t>(std::max(value, -1.0f)); };
  const bool whole = view.as_integers;
  switch (view.channel) {
    case Channel::kU8: {
      auto value = Read<uint8_t>(at);
      if (whole) return value;
      float part = static_cast<float>(value) / 255.0f;
      return fraction(view.srgb && index < 3 ? FromSrgb(part) : part);
    }
    case Channel::kS8: {
      auto value = Read<int8_t>(at);
      return whole ? static_cast<uint32_t>(int32_t{value})
                   : fraction(static_cast<float>(value) / 127.0f);
    }
    case Channel::kU16: {
      auto value = Read<uint16_t>(at);
      return whole ? value : fraction(static_cast<float>(value) / 65535.0f);
    }
    case Channel::kS16: {
      auto value = Read<int16_t>(at);
      return whole ? static_cast<uint32_t>(int32_t{value})
                   : fraction(static_cast<float>(value) / 32767.0f);
    }
    case Channel::kF16:
      return std::bit_cast<uint32_t>(HalfToFloat(Read<uint16_t>(at)));
    default:
      return Read<uint32_t>(at);
  }
}

// Which of `size` texels the index means; false: the border.
bool Resolve(int64_t* index, int64_t size, Addressing mode) {
  if (*index >= 0 && *index < size) return true;
  switch (mode) {
    case Addressing::kWrap:
      *index = (*index % size + size) % size;
      return true;
    case Addressing::kMirror: {
      int64_t place = (*index % (2 * size) + 2 * size) % (2 * size);
      *index = place < size ? place : 2 * size - 1 - place;
      return true;
    }
    case Addressing::kBorder:
      return false;
    default:
      *index = std::clamp<int64_t>(*index, 0, size - 1);
      return true;
  }
}

Texel Border(const TextureView& view) {
  Texel texel;
  for (int i = 0; i < 4; ++i) {
    texel.bits[i] = view.returns_floats() ? std::bit_cast<uint32_t>(view.border[i])
                                          : static_cast<uint32_t>(int64_t(view.border[i]));
  }
  return texel;
}

}  // namespace

uint32_t TextureView::texel_bytes() const { return channels * ChannelBytes(channel); }

bool TextureView::returns_floats() const {
  if (channel == Channel::kF16 || channel == Channel::kF32) return true;
  return !as_integers && channel != Channel::kU32 && channel != Channel::kS32;
}

Texel Fetch(const TextureView& view, const Texels& texels, const Place& place,
            std::array<int64_t, 3> index) {
  const int64_t sizes[] = {texels.width, texels.height, texels.depth};
  for (int axis = 0; axis < place.dims; ++axis) {
    Addressing mode = view.addressing[axis];
    // Repetition is known for coordinates from 0 to 1 only.
    bool repeats = mode == Addressing::kWrap || mode == Addressing::kMirror;
    if (repeats && !Normalized(view, place)) mode = Addressing::kClamp;
    if (place.cube && view.seamless) mode = Addressing::kClamp;
    if (view.linear_memory && (index[axis] < 0 || index[axis] >= sizes[axis])) return {};
    if (!Resolve(&index[axis], sizes[axis], mode)) return Border(view);
  }
  for (int axis = place.dims; axis < 3; ++axis) index[axis] = 0;
  if (place.layered) index[2] = std::min<int64_t>(place.layer, texels.depth - 1);
  const auto* at = reinterpret_cast<const std::byte*>(
      texels.address + static_cast<uint64_t>(index[2]) * texels.slice_bytes +
      static_cast<uint64_t>(index[1]) * texels.row_bytes +
      static_cast<uint64_t>(index[0]) * view.texel_bytes());
  Texel texel;
  texel.bits[3] = view.returns_floats() ? std::bit_cast<uint32_t>(1.0f) : 1;
  for (uint32_t i = 0; i < view.channels; ++i) {
    texel.bits[i] = Decode(view, at + i * ChannelBytes(view.channel), i);
  }
  return texel;
}

}  // namespace softgpu
