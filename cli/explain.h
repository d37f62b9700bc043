// longwire doctor --explain: what becomes of a driver function, or what a program uses that is
// refused.
#pragma once

#include "cli/commands.h"

namespace longwire::cli {

// `arguments` as they stand after --explain. Names: the exit status is 0 if all are known. A
// program: its own exit status.
int Explain(const Arguments& arguments);

}  // namespace longwire::cli
