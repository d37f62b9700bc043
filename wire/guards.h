// Guards that a test switches off to show that it watches them (tests/proof). Each is named in
// LONGWIRE_DISABLE, a comma list, read once when first asked; nobody sets it in production.
#pragma once

#include <string_view>

namespace longwire::wire {

// True if LONGWIRE_DISABLE names the guard.
bool GuardIsOff(std::string_view guard);

}  // namespace longwire::wire
