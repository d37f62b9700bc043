// Puts probes into a module's PTX. What the module did it does as before: probes have registers and
// labels of their own, and maps of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "probe/probe.h"

namespace longwire::probe {

inline constexpr size_t kMaxRewrittenBytes = size_t{64} << 20;

struct Rewritten {
  std::string text;
  std::map<uint32_t, std::string> kernels;  // names by their hash
  size_t sites = 0;                         // where probes were put in; 0: the text is as it was
};

// `kernels`: a pattern of the names of kernels and functions, with * and ?. None with a sentence
// that names the line.
std::optional<Rewritten> Rewrite(std::string_view ptx, const ProbeSet& set,
                                 const std::string& kernels, std::string* sentence);

// FNV-1a, 32 bits.
uint32_t HashOf(std::string_view name);

}  // namespace longwire::probe
