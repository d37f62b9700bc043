// Where a kernel's parameter lies among the bytes of all.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace longwire::worker {

// In bytes.
struct ParameterPlace {
  uint32_t offset = 0;
  uint32_t size = 0;
  auto operator<=>(const ParameterPlace&) const = default;
};
using FunctionParameters = std::vector<ParameterPlace>;  // by the parameter's number

}  // namespace longwire::worker
