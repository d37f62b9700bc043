// The server requests memory that this session has leased but not allocated.
#pragma once

#include "client-shim/session/session.h"
#include "wire/record.h"

namespace longwire::shim {

// Called on the thread that reads the down log. Another thread gives the memory back and replies.
// False if the session has no such device, or if too many requests wait.
bool OnReclaim(ClientSession& session, const wire::ReclaimRequest& request);

// Another thread reports how much a device's memory has free, which the server asked for.
void ReportFree(ClientSession& session, int server_device, uint64_t request);

}  // namespace longwire::shim
