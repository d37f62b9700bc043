// Where tests stop a move between servers, to kill a daemon or to cut a cable there. In builds
// whose guards can be turned off a daemon stands still at STEP while a file stop-at-STEP is in its
// LONGWIRE_RUNTIME_DIR, for at most two minutes, and says so by a file at-STEP. In all shipped
// builds there is nothing of that.
#pragma once

#include <string_view>

#include "longwire/guard_switches.h"

namespace longwire::daemon {

#if LONGWIRE_GUARD_SWITCHES
void AtStep(std::string_view step);
#else
inline void AtStep(std::string_view) {}
#endif

}  // namespace longwire::daemon
