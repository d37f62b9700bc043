// The variables of a cubin, for sessions that move (carried_variables.h).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace longwire::worker {

// Adds the names of all that the cubin's code, or the host, can write. The driver places each by
// itself. A sentence if that cannot be carried.
std::string NamesOfCubin(std::span<const char> file, std::vector<std::string>* names);

}  // namespace longwire::worker
