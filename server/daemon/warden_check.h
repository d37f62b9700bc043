// Whether a warden that runs already has what the configuration asks for: it outlives daemons, and
// keys of the software device count when it starts.
#pragma once

#include <string>

#include "server/config/config.h"
#include "server/warden/protocol.h"

namespace longwire::daemon {

// What differs, and what to do about it; empty when nothing does.
std::string DifferenceOf(const config::Config& config, const warden::Stats& stats);

}  // namespace longwire::daemon
