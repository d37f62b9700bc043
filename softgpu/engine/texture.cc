#include "softgpu/engine/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace softgpu {
namespace {

struct Objects {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<const TextureView>> views;
  uint64_t next = 1;
};

Objects& TheObjects() {
  static auto* objects = new Objects;
  return *objects;
}

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

Texel Fetch(const TextureView& view, const Texels& texels, const Place& place,
            std::array<int64_t, 3> index) {
  const int64_t sizes[] = {texels.width, texels.height, texels.depth};
  for (int axis = 0; axis < place.dims; ++axis) {
    Addressing mode = view.addressing[axis];
    // Repetition is known for coordinates from 0 to 1 only.
    bool repeats = mode == Addressing::kWrap || mode == Addressing::kMirror;
    if (repeats && !view.normalized) mode = Addressing::kClamp;
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

void Blend(Texel* sum, const Texel& texel, float weight) {
  for (int i = 0; i < 4; ++i) {
    float value = std::bit_cast<float>(sum->bits[i]);
    value += weight * std::bit_cast<float>(texel.bits[i]);
    sum->bits[i] = std::bit_cast<uint32_t>(value);
  }
}

int64_t Floor(float value) {
  // Far outside every texture, and no number at all counts as the first texel.
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::floor(std::clamp(value, -1e9f, 1e9f)));
}

Texel SampleLevel(const TextureView& view, const Texels& texels, const Place& place) {
  if (place.exact) {
    return Fetch(view, texels, place, {place.whole[0], place.whole[1], place.whole[2]});
  }
  const float sizes[] = {static_cast<float>(texels.width), static_cast<float>(texels.height),
                         static_cast<float>(texels.depth)};
  const bool filtered = view.linear && view.returns_floats();
  std::array<int64_t, 3> low{};
  std::array<float, 3> part{};
  for (int axis = 0; axis < place.dims; ++axis) {
    float at = place.at[axis] * (view.normalized ? sizes[axis] : 1.0f) - (filtered ? 0.5f : 0.0f);
    low[axis] = Floor(at);
    // Devices filter with eight bits of fraction.
    part[axis] = std::round((at - static_cast<float>(low[axis])) * 256.0f) / 256.0f;
  }
  if (!filtered) return Fetch(view, texels, place, low);
  Texel sum;
  for (int corner = 0; corner < 1 << place.dims; ++corner) {
    std::array<int64_t, 3> index = low;
    float weight = 1;
    for (int axis = 0; axis < place.dims; ++axis) {
      const bool high = (corner >> axis & 1) != 0;
      index[axis] += high ? 1 : 0;
      weight *= high ? part[axis] : 1 - part[axis];
    }
    if (weight != 0) Blend(&sum, Fetch(view, texels, place, index), weight);
  }
  return sum;
}

}  // namespace

uint32_t TextureView::texel_bytes() const { return channels * ChannelBytes(channel); }

bool TextureView::returns_floats() const {
  if (channel == Channel::kF16 || channel == Channel::kF32) return true;
  return !as_integers && channel != Channel::kU32 && channel != Channel::kS32;
}

namespace texture_objects {

uint64_t Add(std::shared_ptr<const TextureView> view) {
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  objects.views[objects.next] = std::move(view);
  return objects.next++;
}

bool Remove(uint64_t object) {
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  return objects.views.erase(object) != 0;
}

std::shared_ptr<const TextureView> Find(uint64_t object) {
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  auto found = objects.views.find(object);
  return found == objects.views.end() ? nullptr : found->second;
}

}  // namespace texture_objects

Texel Sample(const TextureView& view, const Place& place) {
  const float most = static_cast<float>(view.levels.size() - 1);
  if (most == 0) return SampleLevel(view, view.levels.front(), place);
  float level = std::clamp(place.level + view.bias, view.least_level,
                           std::max(view.least_level, view.most_level));
  level = std::clamp(std::isnan(level) ? 0 : level, 0.0f, most);
  if (!view.mip_linear || !view.returns_floats()) {
    return SampleLevel(view, view.levels[static_cast<size_t>(level + 0.5f)], place);
  }
  const auto low = static_cast<size_t>(level);
  const float part = level - static_cast<float>(low);
  Texel sum;
  Blend(&sum, SampleLevel(view, view.levels[low], place), 1 - part);
  if (part != 0) Blend(&sum, SampleLevel(view, view.levels[low + 1], place), part);
  return sum;
}

}  // namespace softgpu
