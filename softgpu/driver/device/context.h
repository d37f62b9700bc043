// How contexts begin and end.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

Context* MakeContext(int device, bool primary) LONGWIRE_REQUIRES(Driver::mutex);
// Ends the context's work, destroys its streams and modules and frees its allocations.
void TearDown(Context& context) LONGWIRE_EXCLUDES(Driver::mutex);

}  // namespace softgpu
