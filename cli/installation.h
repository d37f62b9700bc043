// Whether this host has what programs need of Longwire.
#pragma once

#include "cli/report.h"

namespace longwire::cli {

void CheckInstallation(Report* report);

}  // namespace longwire::cli
