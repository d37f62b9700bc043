// Sizes of grids and blocks as text: "128", "16x16", "8x8x4".
#pragma once

#include <cstdint>
#include <string_view>

namespace longwire::rules {

// False unless it is one to three positive numbers with x between. Those that are not there are 1.
bool ParseSizes(std::string_view text, uint32_t (&sizes)[3]);

}  // namespace longwire::rules
