// How contexts begin and end.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

Context* MakeContext(int device, bool primary);
// Ends the context's work, destroys its streams and modules and frees its allocations.
void TearDown(Context& context);

}  // namespace softgpu
