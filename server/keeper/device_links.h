// The NVLinks of a device, which the driver does not tell of: from NVIDIA's management library.
#pragma once

#include <string>
#include <vector>

#include "server/keeper/protocol.h"

namespace longwire::keeper {

// The links that are up of the device with this UUID (16 bytes), as libnvidia-ml.so.1 says that
// lies in the driver's folder. Empty where there is none or it does not answer.
std::vector<DeviceLink> LinksOf(const std::string& driver, const std::string& uuid);

}  // namespace longwire::keeper
