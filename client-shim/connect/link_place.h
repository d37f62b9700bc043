// Where this user's link is, and how it is started: everything that is needed for another one when
// it has ended, which may be looked up at any time and from any thread. The program's environment
// and settings are read once.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "client-shim/connect/options.h"
#include "wire/socket.h"

namespace longwire::shim {

struct LinkPlace {
  std::string folder;
  // Of links that are less limited than this program; one that is there is used.
  std::vector<std::string> freer_sockets;
  std::string socket;                    // where one is started if none is there
  std::vector<std::string> words;        // the command line; first the binary
  std::vector<std::string> environment;  // NAME=value
};

// False, with a message in `sentence`, if the folder cannot be trusted.
bool FindLinkPlace(const Options& options, LinkPlace* place, std::string* sentence);

// Connects to the link, which is started if there is none. On failure the descriptor is invalid,
// with a message in `sentence`.
wire::Descriptor ConnectToLink(const LinkPlace& place,
                               std::chrono::steady_clock::time_point deadline,
                               std::string* sentence);

// Starts `longwire-link`, not as a child of the program: its wait() never returns the link. Until
// it serves, its standard error is `words`, unless that is -1. False if it cannot be started.
bool StartLink(const LinkPlace& place, int words, std::string* sentence);

}  // namespace longwire::shim
