#include "wire/switches.h"

#include <span>

#include "wire/disabled_names.h"
#include "wire/guards.h"

namespace longwire::wire {
namespace {

static_assert(std::ranges::is_sorted(kSwitches));

bool Has(std::span<const std::string_view> table, std::string_view name) {
  return std::ranges::find(table, name) != table.end();
}

}  // namespace

bool IsSwitchedOff(SwitchName name) { return IsDisabled(name.text()); }

std::vector<std::string> UnknownSwitches() {
  std::vector<std::string> sentences;
  for (std::string_view rest = DisabledList(); !rest.empty();) {
    std::string_view name = TakeName(&rest);
    if (name.empty() || Has(kSwitches, name) || Has(kGuards, name)) continue;
    sentences.push_back("LONGWIRE_DISABLE names '" + std::string(name) +
                        "', which is no optimisation; see docs/switches.md");
  }
  return sentences;
}

}  // namespace longwire::wire
