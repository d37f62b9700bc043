#include "wire/guards.h"

#include <cstdio>
#include <cstdlib>

namespace longwire::wire {

namespace {

std::string_view Disabled() {
  static const std::string_view disabled = [] {
    const char* value = std::getenv("LONGWIRE_DISABLE");
    return std::string_view(value == nullptr ? "" : value);
  }();
  return disabled;
}

}  // namespace

bool IsSwitchedOff(std::string_view optimisation) {
  for (std::string_view rest = Disabled(); !rest.empty();) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == optimisation) return true;
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return false;
}

bool GuardIsOff(std::string_view guard) {
  if (!IsSwitchedOff(guard)) return false;
  static const int told = std::fprintf(
      stderr, "longwire: guards are off, which only a test may ask for: LONGWIRE_DISABLE=%.*s\n",
      static_cast<int>(Disabled().size()), Disabled().data());
  return told != 0;
}

}  // namespace longwire::wire
