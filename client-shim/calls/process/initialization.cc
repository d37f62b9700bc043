// Initialisation and the version.
#include "client-shim/connect/process.h"
#include "client-shim/context/current_context.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuInit(unsigned int Flags) { return InitializeProcess(Flags); }

CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = DriverVersion();
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
