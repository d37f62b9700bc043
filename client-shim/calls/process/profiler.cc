// The profiler, which the driver no longer starts.
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuProfilerInitialize(const char* /*configFile*/, const char* /*outputFile*/,
                              CUoutput_mode /*outputMode*/) {
  return CUDA_ERROR_NOT_SUPPORTED;  // the driver's answer since CUDA 12
}

}  // namespace longwire::shim::hand
