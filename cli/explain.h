// longwire doctor --explain: how a driver function is served, or which refused functions a program
// uses.
#pragma once

#include "cli/commands.h"

namespace longwire::cli {

// The exit status: 0 if all functions are known, else that of wrong use.
int ExplainNames(const Arguments& names, bool json);
// Runs the program with its arguments; the exit status is its own.
int ExplainProgram(const Arguments& words);

}  // namespace longwire::cli
