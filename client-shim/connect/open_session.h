// Opens a session at the user's server.
#pragma once

#include <string>
#include <vector>

#include "client-shim/connect/options.h"
#include "client-shim/session/session.h"

namespace longwire::shim {

// Opens a session within five seconds. On failure it returns false, with a message in `sentence`.
// The server may also refuse in its reply (parts->reply.code).
bool OpenSession(const Options& options, const std::vector<wire::Window>& windows,
                 SessionParts* parts, std::string* sentence);

}  // namespace longwire::shim
