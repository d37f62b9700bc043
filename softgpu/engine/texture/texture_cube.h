// Cube maps: which face a direction meets, and where. Faces lie in the order +x, -x, +y, -y, +z, -z
// in the places of layers, six for each cube.
#pragma once

#include <array>
#include <cstdint>

namespace softgpu {

constexpr uint32_t kFaces = 6;

struct FacePlace {
  uint32_t face = 0;
  float s = 0, t = 0;  // from 0 to 1 across the face
};

FacePlace FindFace(const std::array<float, 3>& direction);

// How s and t change where the direction changes by `gradient`.
std::array<float, 2> FaceGradient(const std::array<float, 3>& direction,
                                  const std::array<float, 3>& gradient);

// Moves a texel beyond one edge of a face of size x size texels, one step outside, to the face on
// the other side of the edge.
void CrossEdge(int64_t size, uint32_t* face, int64_t* x, int64_t* y);

}  // namespace softgpu
