// What arrays and other small things take of a device, as bounds from above.
#pragma once

#include <cstdint>

#include "server/worker/support/driver.h"

namespace longwire::worker {

// The driver lays an array out in blocks, and takes pages of 2 MiB for large ones. Measured on an
// H200 with driver 580; shapes of which that is not known are charged more. UINT64_MAX: no device
// has so much.
uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels = 1);

// An allocation of the driver: small ones share pages, large ones have their own.
uint64_t AllocatedBytes(uint64_t bytes);

// What a context takes beyond what it has at first, if this limit is `value`.
uint64_t LimitBytes(const DriverTable& driver, CUdevice device, CUlimit limit, uint64_t value);
// The same for a kernel that needs these bytes of its own in each thread.
uint64_t LocalBytes(const DriverTable& driver, CUdevice device, uint64_t bytes_per_thread);

}  // namespace longwire::worker
