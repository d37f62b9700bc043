// The way to a door: finds or starts the link of the user's server, or goes to a daemon's own door.
// What is said there is another matter: an opening (door.h), or the question what there is.
#pragma once

#include <chrono>
#include <string>

#include "client-shim/door/options.h"
#include "wire/socket.h"

namespace longwire::shim {

// Whether the server is a daemon's own door, so on this host.
bool IsLocal(const Options& options);

// Connects, starting a link when there is none. An invalid descriptor with a sentence otherwise.
wire::Descriptor Knock(const Options& options, std::chrono::steady_clock::time_point deadline,
                       std::string* sentence);

// Where the link of these options listens; empty with a sentence if the folder cannot be trusted.
std::string LinkDoorPath(const Options& options, std::string* sentence);

// Starts `longwire-link` so that the program's wait never sees it. False if it cannot be started.
bool StartLink(const Options& options, const std::string& door, std::string* sentence);

}  // namespace longwire::shim
