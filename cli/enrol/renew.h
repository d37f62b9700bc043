// longwire cert renew.
#pragma once

#include "cli/commands.h"

namespace longwire::cli {

void AddRenew(CommandLine& line, CLI::App& cert);

}  // namespace longwire::cli
