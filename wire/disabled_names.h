// What LONGWIRE_DISABLE names: switches (wire/switches.h) and guards (wire/guards.h).
#pragma once

#include <string_view>

namespace longwire::wire {

// For processes that read client.conf: its list, or the environment's, as ClientSettings has it.
// Before anybody asks.
void SetDisabled(std::string_view list);

// The list, and whether it has the name, with or without blanks around it.
std::string_view DisabledList();
bool IsDisabled(std::string_view name);

// Takes the first name off a list, without the blanks around it; empty for one between two commas.
std::string_view TakeName(std::string_view* list);

}  // namespace longwire::wire
