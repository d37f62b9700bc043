// Checks the installation of Longwire on this host.
#pragma once

#include "cli/report.h"

namespace longwire::cli {

void CheckInstallation(Report* report);

}  // namespace longwire::cli
