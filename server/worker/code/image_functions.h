// The functions in a code image, read from its bytes: for drivers older than CUDA 12.4, which name
// neither the functions of a module nor the parameters of one.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "server/worker/support/parameter_place.h"

namespace longwire::worker {

// By name, from PTX, cubins and fat binaries of them; what cannot be read is left out. Only the
// driver knows which of them it takes for its device.
std::map<std::string, FunctionParameters> FunctionsOfImage(std::span<const std::byte> image);

}  // namespace longwire::worker
