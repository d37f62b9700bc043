// A test program: loads the installed libcuda.so.1, opens a session and copies a few bytes to a
// device and back. It runs in a process of its own, as any program does, so that it meets the same
// problems.
#pragma once

#include <string>

#include "cli/command_line/command_line.h"
#include "cli/report.h"

namespace longwire::cli {

// The command that starts this process; not documented for users.
inline constexpr const char* kTriedProgram = "tried-program";

// Starts it as longwire run would, waits for its end for a limited time, and reports.
void TryProgram(const std::string& server, Report* report);

// The test program's main function. Prints each step to standard output.
int TriedProgram(const Arguments& arguments);

}  // namespace longwire::cli
