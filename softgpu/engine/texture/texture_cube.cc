#include "softgpu/engine/texture/texture_cube.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace softgpu {
namespace {

// The axes of a face, as the CUDA programming guide lists them for cube maps: m is the axis that
// the face is across; s and t run along the others, some of them backwards.
struct Axes {
  size_t m, s, t;
  float m_sign, s_sign, t_sign;
};
constexpr Axes kAxes[kFaces] = {{0, 2, 1, 1, -1, -1}, {0, 2, 1, -1, 1, -1}, {1, 0, 2, 1, 1, 1},
                                {1, 0, 2, -1, 1, -1}, {2, 0, 1, 1, 1, -1},  {2, 0, 1, -1, -1, -1}};

// The guide leaves open which of two equally long axes wins; here z does, then y.
uint32_t FaceOf(const std::array<float, 3>& direction) {
  const float x = std::abs(direction[0]), y = std::abs(direction[1]), z = std::abs(direction[2]);
  const uint32_t axis = z >= x && z >= y ? 2 : y >= x ? 1 : 0;
  return 2 * axis + (direction[axis] < 0 ? 1 : 0);
}

// Not 0, so that the direction without a length meets the middle of a face.
float Major(const std::array<float, 3>& direction, const Axes& axes) {
  return std::max(std::abs(direction[axes.m]), FLT_MIN);
}

}  // namespace

FacePlace FindFace(const std::array<float, 3>& direction) {
  const uint32_t face = FaceOf(direction);
  const Axes& axes = kAxes[face];
  const float major = Major(direction, axes);
  return {face, (axes.s_sign * direction[axes.s] / major + 1) / 2,
          (axes.t_sign * direction[axes.t] / major + 1) / 2};
}

std::array<float, 2> FaceGradient(const std::array<float, 3>& direction,
                                  const std::array<float, 3>& gradient) {
  const Axes& axes = kAxes[FaceOf(direction)];
  const float major = Major(direction, axes), change = axes.m_sign * gradient[axes.m];
  // The quotient's derivative; half of it, since s and t are halves of the quotient.
  auto along = [&](size_t axis, float sign) {
    return sign * (gradient[axis] - direction[axis] * change / major) / major / 2;
  };
  return {along(axes.s, axes.s_sign), along(axes.t, axes.t_sign)};
}

void CrossEdge(int64_t size, uint32_t* face, int64_t* x, int64_t* y) {
  const Axes& axes = kAxes[*face];
  const auto scale = static_cast<float>(size);
  // From just beyond the edge a direction meets the neighbour, in the texel beside the edge.
  constexpr float kBeyond = 1 + FLT_EPSILON;
  auto middle = [&](int64_t index) {
    if (index < 0) return -kBeyond;
    return index >= size ? kBeyond : (2 * static_cast<float>(index) + 1) / scale - 1;
  };
  std::array<float, 3> direction{};
  direction[axes.m] = axes.m_sign;
  direction[axes.s] = axes.s_sign * middle(*x);
  direction[axes.t] = axes.t_sign * middle(*y);
  const FacePlace place = FindFace(direction);
  auto texel = [&](float at) {
    return std::clamp<int64_t>(static_cast<int64_t>(at * scale), 0, size - 1);
  };
  *face = place.face;
  *x = texel(place.s);
  *y = texel(place.t);
}

}  // namespace softgpu
