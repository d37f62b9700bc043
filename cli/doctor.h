// longwire doctor, also as another command's last step.
#pragma once

#include "cli/connect.h"

namespace longwire::cli {

// Prints what works with this server and what does not. The exit status.
int Diagnose(const ServerOptions& options, bool all_calls, bool json);

}  // namespace longwire::cli
