// The start of a worker: a warm context per device before any client is known, then the answer to
// the client's opening: windows, devices with all their attributes, the first lease.
#pragma once

#include <string>
#include <vector>

#include "server/worker/memory/memory.h"
#include "server/worker/process/session.h"
#include "wire/open.h"

namespace longwire::worker {

// Initialises the driver and retains the primary contexts of these devices (as the driver counts).
// The first one is current afterwards. `keepers` has one socket per device.
CUresult WarmDevices(const DriverTable& driver, const std::vector<int>& ordinals,
                     const std::vector<int>& keepers, std::vector<Device>* devices,
                     std::string* sentence);

// Fills in the reply. On failure its code and sentence say why. `missing` are the functions that
// the driver lacks.
void OpenSession(Session& session, const wire::OpenRequest& request,
                 const std::vector<std::string>& missing, wire::OpenReply* reply);

}  // namespace longwire::worker
