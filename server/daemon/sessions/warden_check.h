// Compares a running warden with the configuration: it outlives daemons, and it reads the keys of
// the software device only when it starts.
#pragma once

#include <string>

#include "server/config/config.h"
#include "server/protocol/warden.h"

namespace longwire::daemon {

// A sentence with the difference and a remedy; empty when there is none.
std::string DifferenceOf(const config::Config& config, const warden::Stats& stats);

}  // namespace longwire::daemon
