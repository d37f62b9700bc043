// Where the server's driver has put something of its own: variables of modules, memory of graphs.
// The program takes these addresses from the server. None may be one of its pinned memory, or one
// that the client gives out: a copy to the one would reach the other.
#pragma once

#include <cstdint>

namespace longwire::shim {

// The driver has put something there. False if it cannot have.
bool NotePlaced(uint64_t address, uint64_t bytes);
void ForgetPlaced(uint64_t address);

// The program pins memory outside of the windows. False if something of the driver lies there.
bool NotePinned(uint64_t address, uint64_t bytes);
void ForgetPinned(uint64_t address);

}  // namespace longwire::shim
