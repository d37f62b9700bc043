// A device's physical memory through the virtual memory functions of a CUDA driver library, which
// is loaded at run time.
#pragma once

#include <memory>
#include <string>

#include "server/keeper/device_memory.h"

namespace longwire::keeper {

// Loads the library at `driver`, initialises it and retains the device's primary context (the
// scrubbing needs one). nullptr on failure, with a CUresult and a sentence for people.
std::unique_ptr<DeviceMemory> OpenVmmDevice(const std::string& driver, int device, int* code,
                                            std::string* sentence);

}  // namespace longwire::keeper
