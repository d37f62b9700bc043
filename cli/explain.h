// longwire doctor --explain: how a driver function is served, or which refused functions a program
// uses.
#pragma once

#include "cli/commands.h"

namespace longwire::cli {

// `arguments`: those after --explain. With names, the exit status is 0 if all are known; with a
// program, it is the program's.
int Explain(const Arguments& arguments);

}  // namespace longwire::cli
