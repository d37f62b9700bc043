// A pool of servers, for people and programs.
#pragma once

#include <string>

#include "cli/operator/operator.h"

namespace longwire::cli {

// longwire status --pool. The exit status.
int PoolStatus(Operator& server, bool json);

}  // namespace longwire::cli
