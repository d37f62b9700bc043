#include "softgpu/engine/texture/texture_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "softgpu/engine/texture/texture_cube.h"
#include "softgpu/engine/texture/texture_fetch.h"

namespace softgpu {
namespace {

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

// Texels between which a filter lies: those from `low`, of which each axis' next one has `part`.
struct Footprint {
  std::array<int64_t, 3> low{};
  std::array<float, 3> part{};
  std::array<float, 8> weights{};  // of the corners: bit i is the next one along axis i
};

// Devices round to eight bits of a texel's width.
float Rounded(float texels) { return std::round(texels * 256.0f) / 256.0f; }

float InTexels(const TextureView& view, const Texels& texels, const Place& place, int axis) {
  const uint32_t sizes[] = {texels.width, texels.height, texels.depth};
  return place.at[axis] * (Normalized(view, place) ? static_cast<float>(sizes[axis]) : 1.0f);
}

Footprint FootprintOf(const TextureView& view, const Texels& texels, const Place& place) {
  Footprint footprint;
  for (int axis = 0; axis < place.dims; ++axis) {
    const float at = InTexels(view, texels, place, axis) - 0.5f;
    footprint.low[axis] = Floor(at);
    footprint.part[axis] = Rounded(at - static_cast<float>(footprint.low[axis]));
  }
  for (size_t corner = 0; corner < size_t{1} << place.dims; ++corner) {
    float& weight = footprint.weights[corner] = 1;
    for (int axis = 0; axis < place.dims; ++axis) {
      const float part = footprint.part[axis];
      weight *= (corner >> axis & 1) != 0 ? part : 1 - part;
    }
  }
  return footprint;
}

std::array<int64_t, 3> CornerOf(const Footprint& footprint, size_t corner) {
  std::array<int64_t, 3> index = footprint.low;
  for (size_t axis = 0; axis < 3; ++axis) index[axis] += corner >> axis & 1;
  return index;
}

bool Outside(const Texels& texels, const std::array<int64_t, 3>& index, size_t axis) {
  return index[axis] < 0 || index[axis] >= (axis == 0 ? texels.width : texels.height);
}

// Three faces meet at a cube's corners: there the fourth texel is the mean of the other three.
void ShareMissingCorner(const Texels& texels, Footprint* footprint) {
  for (size_t corner = 0; corner < 4; ++corner) {
    const std::array<int64_t, 3> index = CornerOf(*footprint, corner);
    if (!Outside(texels, index, 0) || !Outside(texels, index, 1)) continue;
    const float share = footprint->weights[corner] / 3;
    for (size_t other = 0; other < 4; ++other) footprint->weights[other] += share;
    footprint->weights[corner] = 0;
    return;
  }
}

// A texel that may lie one step beyond an edge of its face.
Texel FetchAcross(const TextureView& view, const Texels& texels, Place place,
                  std::array<int64_t, 3> index) {
  if (Outside(texels, index, 0) || Outside(texels, index, 1)) {
    uint32_t face = place.layer % kFaces;
    const uint32_t cube = place.layer - face;
    CrossEdge(texels.width, &face, &index[0], &index[1]);
    place.layer = cube + face;
  }
  return Fetch(view, texels, place, index);
}

// Filtering ends at a face's edges, where addressing says what lies beyond, unless the texture asks
// for seamless ones.
Texel SampleLevel(const TextureView& view, const Texels& texels, const Place& place) {
  if (place.exact) {
    return Fetch(view, texels, place, {place.whole[0], place.whole[1], place.whole[2]});
  }
  if (!view.linear || !view.returns_floats()) {
    std::array<int64_t, 3> index{};
    for (int i = 0; i < place.dims; ++i) index[i] = Floor(InTexels(view, texels, place, i));
    return Fetch(view, texels, place, index);
  }
  Footprint footprint = FootprintOf(view, texels, place);
  const bool seamless = place.cube && view.seamless;
  if (seamless) ShareMissingCorner(texels, &footprint);
  Texel sum;
  for (size_t corner = 0; corner < size_t{1} << place.dims; ++corner) {
    const float weight = footprint.weights[corner];
    if (weight == 0) continue;
    const std::array<int64_t, 3> index = CornerOf(footprint, corner);
    Blend(&sum,
          seamless ? FetchAcross(view, texels, place, index) : Fetch(view, texels, place, index),
          weight);
  }
  return sum;
}

Texel SampleLevels(const TextureView& view, const Place& place) {
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

// A direction's face is a layer, in which two coordinates are left.
Place InFace(const TextureView& view, const Place& place) {
  const FacePlace face = FindFace(place.at);
  const uint32_t cubes = std::max(view.levels.front().depth / kFaces, 1u);
  Place in_face = place;
  in_face.at = {face.s, face.t, 0};
  in_face.dims = 2;
  in_face.layered = true;
  in_face.layer = std::min(place.layered ? place.layer : 0, cubes - 1) * kFaces + face.face;
  return in_face;
}

}  // namespace

Texel Sample(const TextureView& view, const Place& place) {
  return SampleLevels(view, place.cube ? InFace(view, place) : place);
}

Texel Gather(const TextureView& view, const Place& place, uint32_t channel) {
  const Texels& texels = view.levels.front();
  std::array<int64_t, 3> low{};
  // Rounded first, as where filters lie: near its edge a texel counts as the next one.
  for (int i = 0; i < 2; ++i) low[i] = Floor(Rounded(InTexels(view, texels, place, i) - 0.5f));
  constexpr std::array<int64_t, 3> kCorners[] = {{0, 1, 0}, {1, 1, 0}, {1, 0, 0}, {0, 0, 0}};
  Texel found;
  for (size_t i = 0; i < 4; ++i) {
    const std::array<int64_t, 3> at = {low[0] + kCorners[i][0], low[1] + kCorners[i][1], 0};
    found.bits[i] = Fetch(view, texels, place, at).bits[channel];
  }
  return found;
}

float LevelOf(const TextureView& view, const Place& place, const Gradient& dx, const Gradient& dy) {
  const Texels& texels = view.levels.front();
  const uint32_t sizes[] = {texels.width, texels.height, texels.depth};
  // Of the squares the logarithm is twice as large.
  auto square = [&](const Gradient& gradient) {
    Gradient change = gradient;
    if (place.cube) {
      const auto in_face = FaceGradient(place.at, gradient);
      change = {in_face[0], in_face[1], 0};
    }
    float sum = 0;
    for (int i = 0; i < (place.cube ? 2 : place.dims); ++i) {
      const float length = change[i] * (Normalized(view, place) ? float(sizes[i]) : 1.0f);
      sum += length * length;
    }
    return sum;
  };
  return std::log2(std::max(square(dx), square(dy))) / 2;
}

}  // namespace softgpu
