// Device printf's formatting: a C format string and arguments packed as nvcc packs them.
#pragma once

#include <cstdint>
#include <string>

#include "softgpu/engine/memory/arena.h"

namespace softgpu {

// Appends to `text`; returns the number of arguments, -1 for no format, less if an address is bad.
int FormatDevicePrint(const Arena& arena, uint64_t format, uint64_t arguments, std::string* text);

// A NUL-terminated string of device memory, cut at 4 KiB or where memory ends.
std::string ReadDeviceString(const Arena& arena, uint64_t address);

}  // namespace softgpu
