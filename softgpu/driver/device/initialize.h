// What cuInit does.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// Makes the devices that the environment asks for, once.
CUresult Initialize();

}  // namespace softgpu
