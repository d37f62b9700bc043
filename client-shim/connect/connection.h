// Connects to the user's server: to the link on this host, which is started if there is none, or
// directly to the daemon's local socket (`unix:`). The caller then sends an opening
// (open_session.h) or requests a view (wire/view.h).
#pragma once

#include <chrono>
#include <string>

#include "client-shim/connect/options.h"
#include "wire/socket.h"

namespace longwire::shim {

// True if the server is given as a daemon's local socket, and thus is on this host.
bool IsLocal(const Options& options);

// Connects. On failure the descriptor is invalid, with a message in `sentence`.
wire::Descriptor ConnectToServer(const Options& options,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::string* sentence);

}  // namespace longwire::shim
