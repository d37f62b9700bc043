// What a module's image says that the module will hold: for sessions that move, whose new worker
// gets the contents of all variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace longwire::worker {

// The names of all variables in global and constant memory that the image declares. `capability`:
// of a device that runs cubins, 90 for 9.0; none: it takes PTX alone. A sentence, of why a session
// with this module cannot move: its variables are not known, it uses the device's heap, or memory
// may hold addresses of its code, which nobody can compare.
std::string NamesOfVariables(std::span<const std::byte> image, std::optional<uint32_t> capability,
                             std::vector<std::string>* names);

}  // namespace longwire::worker
