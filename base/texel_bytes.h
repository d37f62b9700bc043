// Sizes of the elements of arrays and textures.
#pragma once

#include <cstdint>

namespace longwire::base {

// Bytes of one channel, by its CUarray_format: as a number, because cuda.h may only be included
// with what each library defines before it. 0 for the formats that store several channels together.
constexpr uint64_t ChannelBytes(uint32_t format) {
  switch (format) {
    case 0x01:  // CU_AD_FORMAT_UNSIGNED_INT8
    case 0x08:  // CU_AD_FORMAT_SIGNED_INT8
      return 1;
    case 0x02:  // CU_AD_FORMAT_UNSIGNED_INT16
    case 0x09:  // CU_AD_FORMAT_SIGNED_INT16
    case 0x10:  // CU_AD_FORMAT_HALF
      return 2;
    case 0x03:  // CU_AD_FORMAT_UNSIGNED_INT32
    case 0x0a:  // CU_AD_FORMAT_SIGNED_INT32
    case 0x20:  // CU_AD_FORMAT_FLOAT
      return 4;
    default:
      return 0;
  }
}

// Bytes of one element; 0 if no texture has such elements.
constexpr uint64_t TexelBytes(uint32_t format, uint32_t channels) {
  return channels == 1 || channels == 2 || channels == 4 ? ChannelBytes(format) * channels : 0;
}

}  // namespace longwire::base
