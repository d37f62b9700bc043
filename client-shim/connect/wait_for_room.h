// LONGWIRE_WAIT: a program waits for a server that has no room for it now.
#pragma once

#include "client-shim/connect/open_session.h"

namespace longwire::shim {

// As OpenSession, but a server that answers CUDA_ERROR_DEVICE_UNAVAILABLE (the tenant has its
// number of sessions, no device has room, the server is drained) is asked again, for Options::wait,
// or, where that does not say, for as long as the server does for the tenant. Says on standard
// error what it waits for.
bool OpenSessionOrWait(const Options& options, const std::vector<wire::Window>& windows,
                       SessionParts* parts, std::string* sentence);

}  // namespace longwire::shim
