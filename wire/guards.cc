#include "wire/guards.h"

#include <cstdio>

#include "wire/disabled_names.h"

#if LONGWIRE_GUARD_SWITCHES
namespace longwire::wire {

bool GuardIsOff(std::string_view guard) {
  if (!IsDisabled(guard)) return false;
  static const int told = std::fprintf(
      stderr, "longwire: guards are off, which only a test may ask for: LONGWIRE_DISABLE=%.*s\n",
      static_cast<int>(DisabledList().size()), DisabledList().data());
  return told != 0;
}

}  // namespace longwire::wire
#endif
