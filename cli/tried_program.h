// Does what every program does: loads the installed libcuda.so.1, opens a session by it and copies
// a few bytes to a device and back. In a process of its own, because what is wrong on this host
// shows only to who comes the whole way.
#pragma once

#include <string>

#include "cli/commands.h"
#include "cli/report.h"

namespace longwire::cli {

// The command's word for that process; no command for people.
inline constexpr const char* kTriedProgram = "tried-program";

// Starts it as longwire run would, waits for its end, though not for ever, and reports.
void TryProgram(const std::string& server, Report* report);

// That process. Says on standard output what was done, the last thing first of all when it fails.
int TriedProgram(const Arguments& arguments);

}  // namespace longwire::cli
