// Reading a texture: its texels, blended as it says.
#pragma once

#include <array>

#include "softgpu/engine/texture/texture.h"

namespace softgpu {

// The view's memory is there: whoever asks has checked it.
Texel Sample(const TextureView& view, const Place& place);

// One channel of the four texels that a linear filter would blend, in the order (0, 1), (1, 1),
// (1, 0), (0, 0) of their columns and rows.
Texel Gather(const TextureView& view, const Place& place, uint32_t channel);

// How the coordinates change to the next pixel of a picture, to the right or below.
using Gradient = std::array<float, 3>;
// The level whose texels are as large as the longer of both, whatever the shape of the pixel. A GPU
// blends gradients of similar lengths, and its level is up to half a level coarser then.
float LevelOf(const TextureView& view, const Place& place, const Gradient& dx, const Gradient& dy);

}  // namespace softgpu
