#include "wire/guards.h"

#include <cstdio>
#include <cstdlib>

namespace longwire::wire {

bool GuardIsOff(std::string_view guard) {
  const char* value = std::getenv("LONGWIRE_DISABLE");
  for (std::string_view rest = value == nullptr ? "" : value; !rest.empty();) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == guard) {
      std::fprintf(stderr, "longwire: the guard '%.*s' is off, which only a test may ask for\n",
                   static_cast<int>(guard.size()), guard.data());
      return true;
    }
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return false;
}

}  // namespace longwire::wire
