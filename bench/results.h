// Reads the files of bench/results.
#pragma once

#include <string>

#include "cli/bench/page.h"

namespace longwire::bench {

// One file's text. Tables of native against Longwire, as bench/gpu and tests/gpu/run print them,
// become rows; what stands before the first is what is said of the host. The whole text stays
// beside them.
cli::BenchGroup ReadResults(const std::string& title, const std::string& text);

}  // namespace longwire::bench
