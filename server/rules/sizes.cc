#include "server/rules/sizes.h"

#include <charconv>

namespace longwire::rules {

bool ParseSizes(std::string_view text, uint32_t (&sizes)[3]) {
  uint32_t read[3] = {1, 1, 1};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t& size : read) {
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size == 0) return false;
    if (next == end) {
      for (int i = 0; i < 3; ++i) sizes[i] = read[i];
      return true;
    }
    if (*next != 'x') return false;
    at = next + 1;
  }
  return false;
}

}  // namespace longwire::rules
