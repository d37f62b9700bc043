// Probes for a program that is about to be started.
#pragma once

#include <optional>
#include <string>

#include "probe/probe.h"

namespace longwire::cli {

// A tool that comes with Longwire, verified when it is built; or a file, which is verified here.
// None with a sentence.
std::optional<probe::ProbeSet> LoadVerified(const std::string& tool, std::string* file,
                                            std::string* sentence);

// Puts the tool or file into the environment. A sentence of why it cannot be; empty if it can.
std::string PrepareProbes(const std::string& tool, const std::string& kernels,
                          const std::string& output);

}  // namespace longwire::cli
