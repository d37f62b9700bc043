// Opens a session at every server of the program: all of them, or none.
#pragma once

#include <string>
#include <vector>

#include "client-shim/connect/options.h"
#include "client-shim/session/session.h"

namespace longwire::shim {

// The parts of a session for each server, in the order of the list. A server may have refused in
// its reply. If it is empty, *sentence says why.
std::vector<SessionParts> OpenServers(const Options& options,
                                      const std::vector<wire::Window>& windows,
                                      std::string* sentence);

// What is left of the windows behind those that devices have: no address is of two servers.
std::vector<wire::Window> LeftOf(const std::vector<wire::Window>& windows,
                                 const std::vector<wire::Window>& used);

}  // namespace longwire::shim
