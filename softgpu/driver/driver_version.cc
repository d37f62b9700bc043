// One object for each version (CMakeLists.txt says which); all else is the same code.
#include "softgpu/driver/driver_version.h"

#include <cuda.h>

namespace softgpu {

int DriverVersion() { return LONGWIRE_DRIVER_VERSION; }

int LastDeviceAttribute() {
  if (DriverVersion() < 12050) return CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
  if (DriverVersion() < 12090) return CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID;
  return CU_DEVICE_ATTRIBUTE_MAX - 1;
}

}  // namespace softgpu
