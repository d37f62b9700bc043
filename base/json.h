// Text as a string of JSON.
#pragma once

#include <string>
#include <string_view>

namespace longwire::base {

// Quoted and escaped. A byte that is not UTF-8 becomes U+FFFD; characters that may not be shown
// (base/printable.h) are escaped, so that a line of JSON stays one and a terminal obeys nothing.
std::string JsonString(std::string_view text);

}  // namespace longwire::base
