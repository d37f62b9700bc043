// longwire status --programs: programs with devices of several servers, each with its sessions.
#pragma once

#include "cli/connect.h"

namespace longwire::cli {

// Asks every server of the list. The exit status: 1 if one of them did not answer.
int ProgramsStatus(const ServerOptions& options, bool json);

}  // namespace longwire::cli
