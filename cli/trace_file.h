// The file of trace events of a program that a command becomes.
#pragma once

#include <string>

namespace longwire::cli {

// The program is traced into the file, which is empty then. The sentence that refuses a file which
// cannot be written; empty if it can be.
std::string TraceInto(const std::string& path);

}  // namespace longwire::cli
