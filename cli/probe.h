// Probes for a program that is about to be started.
#pragma once

#include <string>

namespace longwire::cli {

// Verifies the tool or file and puts it into the environment. A sentence of why it cannot be; empty
// if it can.
std::string PrepareProbes(const std::string& tool, const std::string& kernels,
                          const std::string& output);

}  // namespace longwire::cli
