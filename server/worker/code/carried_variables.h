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

// Variables that lie together. The driver is asked for the place of one of them.
struct WritablePart {
  struct Name {
    std::string name;
    uint64_t offset = 0;  // in the part
  };
  std::vector<Name> names;
  uint64_t bytes = 0;  // 0: of the one variable, as the driver says
};

// All variables in global and constant memory that the image declares. `capability`: of a device
// that runs cubins, 90 for 9.0; none: it takes PTX alone. A sentence, of why a session with this
// module cannot move: its variables are not known, it uses the device's heap, or memory may hold
// addresses of its code, which nobody can compare.
std::string WritableParts(std::span<const std::byte> image, std::optional<uint32_t> capability,
                          std::vector<WritablePart>* parts);

}  // namespace longwire::worker
