// The PTX in a program's image.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace longwire::probe {

// Of a text, or of a fat binary's entry for the newest architecture up to `capability` (90 is 9.0).
// False with a sentence of why there is none.
bool PtxOf(std::span<const char> image, int capability, std::string* ptx, std::string* sentence);

}  // namespace longwire::probe
