// The server requests memory that this session has leased but not allocated.
#pragma once

#include "client-shim/session/session.h"
#include "wire/record.h"

namespace longwire::shim {

// Called on the thread that reads the down log. Another thread gives the memory back and replies.
void OnReclaim(ClientSession& session, const wire::ReclaimRequest& request);

}  // namespace longwire::shim
