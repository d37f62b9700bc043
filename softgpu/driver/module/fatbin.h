// Code images as the load calls accept them: PTX text, fat binaries (wrapper or container), cubins.
#pragma once

#include <string>

#include "softgpu/driver/state/driver.h"

namespace softgpu {

constexpr size_t kMaxPtxBytes = size_t{64} << 20;  // decompressed; sizes are untrusted
constexpr size_t kMaxContainerBytes = size_t{1} << 30;

// Extracts the PTX to run from `image`: the text itself, or the fat binary's entry of the highest
// architecture that the device can run. On failure fills `reason` with a sentence.
CUresult ExtractPtx(const void* image, std::string* ptx, std::string* reason);
// The same for a container or image whose length is known, which is never read past its end.
CUresult ExtractFromContainer(const char* bytes, size_t size, std::string* ptx,
                              std::string* reason);

}  // namespace softgpu
