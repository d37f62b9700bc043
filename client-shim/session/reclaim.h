// The server asks this session for memory that it keeps free.
#pragma once

#include "client-shim/session/session.h"
#include "wire/record.h"

namespace longwire::shim {

// On the thread that reads what comes down: another one does it, and answers.
void OnReclaim(Session& session, const wire::ReclaimRequest& request);

}  // namespace longwire::shim
