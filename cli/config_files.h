// The files that a configuration names, opened as longwired would: longwire config check.
#pragma once

#include <string>
#include <vector>

#include "server/config/config.h"

namespace longwire::cli {

// A sentence for each file that longwired could not use, where it runs as this process does. Where
// that is root and there is the user that longwired.service runs as, also one for each file that
// this user cannot read.
std::vector<std::string> ProblemsOfFiles(const config::Config& config);

}  // namespace longwire::cli
