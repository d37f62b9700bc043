// What calls may do while streams capture.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// 900 (and the capture is spoilt) if a call that could disturb captures is made by a thread whose
// capture mode forbids it.
CUresult CheckUnsafeInCapture() LONGWIRE_EXCLUDES(Driver::mutex);
// Enter for such calls.
CUresult EnterUnsafe(Context** context = nullptr) LONGWIRE_EXCLUDES(Driver::mutex);
CUstreamCaptureMode& ThreadCaptureMode();

}  // namespace softgpu
