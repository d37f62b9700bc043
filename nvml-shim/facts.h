// What follows from a device's name and compute capability, in NVML's numbers.
#pragma once

#include <string>

#include "nvml-shim/state.h"

namespace longwire::nvml {

unsigned BrandOf(const std::string& name);  // 0: none of NVIDIA's brands
unsigned ArchitectureOf(const Seen& seen);  // NVML_DEVICE_ARCH_UNKNOWN: none that is known
unsigned CoresOf(const Seen& seen);         // 0 for an unknown one

}  // namespace longwire::nvml
