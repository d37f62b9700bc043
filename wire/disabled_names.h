// What LONGWIRE_DISABLE names: switches (wire/switches.h) and guards (wire/guards.h).
#pragma once

#include <string_view>

namespace longwire::wire {

// For processes that read client.conf: sets the list, as ClientSettings has read it. Call it before
// any other function here.
void SetDisabled(std::string_view list);

// The list, and whether it has the name. Blanks around names are ignored.
std::string_view DisabledList();
bool IsDisabled(std::string_view name);

// Removes the first name from a list and returns it without blanks; empty between two commas.
std::string_view TakeName(std::string_view* list);

}  // namespace longwire::wire
