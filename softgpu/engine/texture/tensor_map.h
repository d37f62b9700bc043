// Tensor maps as this device has them: the driver writes them, kernels read them, and nobody else.
#pragma once

#include <cstdint>

namespace softgpu {

constexpr uint32_t kMaxDimensions = 5;

struct TensorMap {
  enum Kind : uint8_t { kTiled = 1, kIm2col = 2, kIm2colWide = 3 };
  uint64_t address;
  uint64_t strides[kMaxDimensions - 1];  // bytes, of all dimensions but the innermost
  uint32_t dimensions[kMaxDimensions];   // less one: there can be 2^32
  int16_t corners[6];                    // the lower ones, then the upper ones
  uint16_t box[kMaxDimensions];          // of im2col: channels, pixels
  uint8_t element_strides[kMaxDimensions];
  uint8_t kind, type, rank, interleave, mode, swizzle, promotion, fill;
  uint8_t element_bits;
  bool copies;           // whether kernels can copy by it here
  uint8_t swizzle_bits;  // of the place of 16 bytes in their row of 128
};
static_assert(sizeof(TensorMap) <= 128);  // a CUtensorMap

}  // namespace softgpu
