// Chooses the driver library: NVIDIA's, or the software device.
#pragma once

#include <memory>
#include <string>

#include "server/keeper/device_memory.h"
#include "server/keeper/protocol.h"

namespace longwire::keeper {

// Opens `device` of the driver that `choice` names: "software", "auto" (NVIDIA's where one works,
// else the software device, with a warning), or the path of a library. Fills in the state's driver;
// on failure nullptr, and the state's code and sentence.
std::unique_ptr<DeviceMemory> OpenChosenDevice(const std::string& choice, int device,
                                               KeeperState* state);

}  // namespace longwire::keeper
