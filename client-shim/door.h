// The way to a server: finds or starts the link, or goes to a daemon's own door, and opens a
// session there.
#pragma once

#include <string>
#include <vector>

#include "client-shim/options.h"
#include "client-shim/session.h"

namespace longwire::shim {

// Opens a session within five seconds. False with one sentence for people otherwise. The reply may
// hold a refusal of the server's (parts->reply.code).
bool OpenSession(const Options& options, const std::vector<wire::Window>& windows,
                 SessionParts* parts, std::string* sentence);

// Where the link of these options listens; empty with a sentence if the folder cannot be trusted.
std::string LinkDoorPath(const Options& options, std::string* sentence);

// Starts `longwire-link` so that the program's wait never sees it. False if it cannot be started.
bool StartLink(const Options& options, const std::string& door, std::string* sentence);

}  // namespace longwire::shim
