// Control groups of workers, within the one that the service manager has delegated.
#pragma once

#include <string>
#include <vector>

namespace longwire::walls {

// The folders in which workers' groups are made: of version 2 `place`, or with "own" that of this
// process, which moves into another one beside the workers'; of version 1 its own of each
// controller. Empty with errno if they cannot be had.
std::vector<std::string> PrepareCgroups(const std::string& place);

}  // namespace longwire::walls
