// One texel of a texture: where addressing puts it, and what its bits say.
#pragma once

#include <array>
#include <cstdint>

#include "softgpu/engine/texture/texture.h"

namespace softgpu {

// Coordinates go from 0 to 1; those in a cube's face always do.
inline bool Normalized(const TextureView& view, const Place& place) {
  return view.normalized || place.cube;
}

// The texel of this index, which may lie outside: addressing says which one is meant.
Texel Fetch(const TextureView& view, const Texels& texels, const Place& place,
            std::array<int64_t, 3> index);

}  // namespace softgpu
