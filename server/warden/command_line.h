// The command line of longwire-warden.
#pragma once

#include <optional>
#include <string>

#include "base/command_line.h"
#include "server/warden/warden.h"

namespace longwire::warden {

using base::Refusal;

// nullopt with a refusal. --software-devices is set in the environment, where the software device
// reads it.
std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal);

}  // namespace longwire::warden
