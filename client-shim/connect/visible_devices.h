// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, interpreted as NVIDIA's driver 580 does.
#pragma once

#include <cuda.h>

#include <vector>

#include "wire/open.h"

namespace longwire::shim {

struct VisibleDevices {
  CUresult code = CUDA_SUCCESS;  // what cuInit returns: NO_DEVICE, INVALID_DEVICE
  std::vector<int> chosen;       // the session's numbers, in the program's order
};

// `list` and `order` are the variables' values, null where they are not set. The list holds numbers
// or UUIDs, whichever its first entry is, and ends with the first entry that names no device.
// Naming one twice is an error, and so is an unknown order.
VisibleDevices ChooseVisible(const char* list, const char* order,
                             const std::vector<wire::DeviceDescription>& devices);

// True if the list selects no device, whatever devices there are: no server need be asked.
bool SelectsNothing(const char* list);

}  // namespace longwire::shim
