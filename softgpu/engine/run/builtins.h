// The functions that nvcc leaves to the device: vprintf, malloc, free, __assertfail and
// cudaGraphSetConditional, and those of kernels that launch kernels. Arguments and results lie as
// for any call, in the caller's frame (data: CallSite).
#pragma once

#include <string_view>

#include "softgpu/engine/run/code.h"

namespace softgpu {

// Null if there is none of that name.
Handler FindBuiltin(std::string_view name);

// device_runtime.cc: those of them that launch, copy and the like.
Handler FindDeviceRuntime(std::string_view name);

}  // namespace softgpu
