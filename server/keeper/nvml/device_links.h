// The NVLinks of a device, from NVIDIA's management library; the driver API does not report them.
#pragma once

#include <string>
#include <vector>

#include "server/protocol/keeper.h"

namespace longwire::keeper {

// The active links of the device with this UUID (16 bytes), as reported by the libnvidia-ml.so.1 in
// the driver's folder. Empty if that library is missing or fails.
std::vector<DeviceLink> LinksOf(const std::string& driver, const std::string& uuid);

}  // namespace longwire::keeper
