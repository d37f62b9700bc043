#include "wire/guards.h"

#include <cstdio>
#include <cstdlib>

namespace longwire::wire {

bool GuardIsOff(std::string_view guard) {
  static const std::string_view disabled = [] {
    const char* value = std::getenv("LONGWIRE_DISABLE");
    return std::string_view(value == nullptr ? "" : value);
  }();
  for (std::string_view rest = disabled; !rest.empty();) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == guard) {
      static const int told = std::fprintf(
          stderr,
          "longwire: guards are off, which only a test may ask for: LONGWIRE_DISABLE=%.*s\n",
          static_cast<int>(disabled.size()), disabled.data());
      return told != 0;
    }
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return false;
}

}  // namespace longwire::wire
