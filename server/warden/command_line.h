// The command line of longwire-warden.
#pragma once

#include <optional>
#include <string>

#include "server/warden/warden.h"

namespace longwire::warden {

// What to print instead of starting, and the exit status: 0 if the text was asked for.
struct Refusal {
  std::string text;
  int status = 2;
};

// nullopt with a refusal. --software-devices is set in the environment, where the software device
// reads it.
std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::warden
