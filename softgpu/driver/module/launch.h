// Launch configurations: what fits on the device, and packing parameters.
#pragma once

#include <vector>

#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

// Blocks of this shape that one multiprocessor holds at once; 0 if not even one fits. Registers do
// not limit: the interpreter has as many as a kernel names.
int BlocksPerMultiprocessor(const Function& function, int threads, size_t dynamic_shared_bytes);

// Refuses what the driver refuses at once. A cooperative launch has that many multiprocessors.
CUresult CheckLaunch(const Function& function, const LaunchConfig& config, int multiprocessors);

// Copies the parameters out of the caller's arrays, `parameters` or `extra`.
CUresult PackParameters(const Function& function, void** parameters, void** extra,
                        std::vector<std::byte>* packed);

}  // namespace softgpu
