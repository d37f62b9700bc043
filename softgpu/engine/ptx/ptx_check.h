// What no PTX has: instructions, modifiers and registers of names that the language does not know.
// What it knows and this device does not is another matter: it fails the launch, not the load.
#pragma once

#include <string_view>

#include "softgpu/engine/ptx/ptx.h"

namespace softgpu {

// Whether the text starts as PTX does, with its version, after blanks and comments.
bool StartsAsPtx(std::string_view text);

// Throws PtxError for the first thing in the body that no compiler would take.
void CheckBody(const PtxFunction& function);

// Whether the name is the CUDA runtime's for device code, which the device has or not.
bool IsDeviceRuntimeName(std::string_view name);

}  // namespace softgpu
