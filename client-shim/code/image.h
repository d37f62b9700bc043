// How long a code image is. Programs pass a bare pointer; what it points to tells its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longwire::shim {

enum class ImageKind { kUnknown, kContainer, kCubin, kText };

struct Image {
  ImageKind kind = ImageKind::kUnknown;
  std::span<const std::byte> bytes;  // to be loaded; empty if there is only something to be linked
  // Of a program in separately compiled parts: the parts, which are linked when it starts if
  // `bytes` has nothing for the device.
  std::vector<std::span<const std::byte>> parts;

  bool empty() const { return bytes.empty() && parts.empty(); }
};

// Measures a fat binary's wrapper (its containers), a container, a cubin, or text that ends with a
// zero byte. kUnknown and empty when it is none of these or claims an absurd size.
Image MeasureImage(const void* image);

// The length of a cubin: the end of whichever of its parts ends last. 0 if it is none.
uint64_t CubinBytes(const std::byte* image);

}  // namespace longwire::shim
