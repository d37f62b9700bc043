// A device's physical memory through the virtual memory functions of a CUDA driver.
#pragma once

#include <memory>
#include <string>

#include "server/driver/driver_choice.h"
#include "server/keeper/device_memory.h"

namespace longwire::keeper {

// Initialises the driver and retains the device's primary context, in which memory is zeroed and
// copied. A CUresult; on failure with a sentence for people, and without a device.
int OpenVmmDevice(const LoadedDriver& driver, int ordinal, std::unique_ptr<DeviceMemory>* device,
                  std::string* sentence);

}  // namespace longwire::keeper
