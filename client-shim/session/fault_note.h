// LONGWIRE_FAULT_FILE: a file to which the process writes a line when a fault of the device takes
// its context, or the server ends its session. longwire run --restart reads it: the exit status
// does not tell why a program ended.
#pragma once

#include <string>

namespace longwire::shim {

// Once for each process; nothing where the variable is not set.
void NoteFault(int code, const std::string& text);

}  // namespace longwire::shim
