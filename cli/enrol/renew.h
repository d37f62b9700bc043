// longwire cert renew.
#pragma once

#include "cli/commands.h"

namespace longwire::cli {

// `arguments`: those after renew. The exit status.
int Renew(const Arguments& arguments);

}  // namespace longwire::cli
