// What a cubin will hold besides code, for sessions that move (carried_variables.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/worker/code/carried_variables.h"

namespace longwire::worker {

// Adds what the cubin's code, or the host, can write. A sentence if that cannot be carried.
std::string WritableOfCubin(std::span<const char> file, std::vector<WritablePart>* parts);

}  // namespace longwire::worker
