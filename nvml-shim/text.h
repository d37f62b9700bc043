// Text that is handed to callers.
#pragma once

#include <string>

#include "nvml-shim/abi.h"

namespace longwire::nvml {

// Copies text with its end; INSUFFICIENT_SIZE when it does not fit into `size` bytes.
nvmlReturn_t CopyText(const std::string& text, char* to, unsigned size);

// "GPU-" and 16 bytes as CUDA's tools write them.
std::string UuidText(const unsigned char* uuid);

}  // namespace longwire::nvml
