// How cvt turns single precision into fewer bits; the `extra` of cvt.narrow's instructions.
#pragma once

#include <cstdint>

namespace softgpu {

enum Narrowing : uint32_t {
  kTowardsZero = 1,  // instead of to nearest, ties to even
  kTiesAway = 2,     // to nearest, ties away from zero
  kRectified = 4,    // negative values become zero
  kFinite = 8,       // what is too large becomes the largest value, infinity too
};

}  // namespace softgpu
