// The start of a worker. It creates a warm context per device before any client is known. Then it
// replies to the client's opening with windows, devices with all their attributes and the first
// lease.
#pragma once

#include <string>
#include <vector>

#include "server/worker/memory/memory.h"
#include "server/worker/process/session.h"
#include "wire/open.h"

namespace longwire::worker {

// Initialises the driver and retains the primary contexts of these devices (the driver's ordinals).
// The first one is current afterwards. `keepers` has one socket per device.
CUresult WarmDevices(const DriverTable& driver, const std::vector<int>& ordinals,
                     const std::vector<int>& keepers, std::vector<Device>* devices,
                     std::string* sentence);

// Fills in the reply; on failure, its code and message. `missing` are the functions that the driver
// lacks.
void OpenSession(WorkerSession& session, const wire::OpenRequest& request,
                 const std::vector<std::string>& missing, wire::OpenReply* reply);

}  // namespace longwire::worker
