// The command line of longwire-web.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "link/certificates/address.h"
#include "wire/client_settings.h"

namespace longwire::web {

inline constexpr uint16_t kDefaultPort = 7480;

struct Options {
  transport::Address listen;
  wire::IdentityFiles tls;           // all empty: no TLS
  std::vector<std::string> hosts;    // more names by which browsers may call it
  std::vector<std::string> control;  // paths of the daemon's control socket, the first that answers
};

using base::Refusal;

// nullopt with a refusal.
std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::web
