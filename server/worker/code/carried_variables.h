// What a module's image says that the module will hold: for sessions that move, whose new worker
// gets the contents of all variables.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace longwire::worker {

// The names of all variables in global and constant memory that the image's PTX declares. A
// sentence, of why a session with this module cannot move: it is no PTX, uses the device's heap, or
// calls through addresses of code, which memory may hold and nobody can compare.
std::string NamesOfVariables(std::span<const std::byte> image, std::vector<std::string>* names);

}  // namespace longwire::worker
