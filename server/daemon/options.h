// The command line of longwired.
#pragma once

#include <optional>
#include <string>

#include "server/daemon/config.h"

namespace longwire::daemon {

struct Refusal {
  std::string text;
  int status = 2;
};

// The configuration with the defaults, the file and the command line applied in this order; nullopt
// with what to print and the exit status.
std::optional<Config> ParseOptions(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::daemon
