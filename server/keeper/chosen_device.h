// The device that a keeper owns, of the driver that serves this host.
#pragma once

#include <memory>
#include <string>

#include "server/keeper/device_memory.h"
#include "server/protocol/keeper.h"

namespace longwire::keeper {

// Opens `device` of the driver that `choice` names, as ChooseDriver has it: a driver works if its
// device can be opened. Fills in the state's driver; on failure nullptr, and the state's code and
// sentence.
std::unique_ptr<DeviceMemory> OpenChosenDevice(const std::string& choice, int device,
                                               KeeperState* state);

}  // namespace longwire::keeper
