// Finds the length of a code image. Programs pass only a pointer; the image's headers hold its
// length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longwire::shim {

enum class ImageKind { kUnknown, kContainer, kCubin, kText };

struct Image {
  ImageKind kind = ImageKind::kUnknown;
  std::span<const std::byte> bytes;  // to be loaded; empty if there are only parts to link
  // The parts of a separately compiled program. They are linked when it starts, if `bytes` has no
  // code for the device.
  std::vector<std::span<const std::byte>> parts;

  bool empty() const { return bytes.empty() && parts.empty(); }
};

// Measures a fat binary's wrapper (its containers), a container, a cubin, or text that ends with a
// zero byte. kUnknown and empty if it is none of these, or if its headers state an absurd size.
Image MeasureImage(const void* image);

// The length of a cubin, up to the end of its last part; 0 if it is no cubin.
uint64_t CubinBytes(const std::byte* image);

}  // namespace longwire::shim
