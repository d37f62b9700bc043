// Opens a session at the door of the user's server.
#pragma once

#include <string>
#include <vector>

#include "client-shim/door/options.h"
#include "client-shim/session/session.h"

namespace longwire::shim {

// Opens a session within five seconds. False with one sentence for people otherwise. The reply may
// hold a refusal of the server's (parts->reply.code).
bool OpenSession(const Options& options, const std::vector<wire::Window>& windows,
                 SessionParts* parts, std::string* sentence);

}  // namespace longwire::shim
