// The CUresults that link and daemon answer with.
#pragma once

#include "base/cuda_codes.h"

namespace longwire::transport {

using base::kDeviceUnavailable;
using base::kLaunchFailed;
using base::kNoDevice;
using base::kNotReady;
using base::kOutOfMemory;
using base::kSystemDriverMismatch;
using base::kUnknown;

}  // namespace longwire::transport
