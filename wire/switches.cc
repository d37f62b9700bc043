#include "wire/switches.h"

#include <cstdlib>
#include <span>

#include "wire/guards.h"

namespace longwire::wire {
namespace {

static_assert(std::ranges::is_sorted(kSwitches));

std::string& List() {
  static std::string& list = *new std::string([] {
    const char* value = std::getenv("LONGWIRE_DISABLE");
    return value == nullptr ? "" : value;
  }());
  return list;
}

// Takes the first name off the list; empty for one between two commas.
std::string_view TakeName(std::string_view* list) {
  constexpr const char* kBlanks = " \t\r\n";
  std::string_view name = list->substr(0, list->find(','));
  list->remove_prefix(std::min(name.size() + 1, list->size()));
  name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
  return name.substr(0, name.find_last_not_of(kBlanks) + 1);
}

bool Has(std::span<const std::string_view> table, std::string_view name) {
  return std::ranges::find(table, name) != table.end();
}

}  // namespace

bool IsSwitchedOff(SwitchName name) { return IsDisabled(name.text()); }

void SetDisabled(std::string_view list) {
  if (List() != list) List() = list;  // tests have a worker in the program's process, which asks
}

std::vector<std::string> UnknownSwitches() {
  std::vector<std::string> sentences;
  for (std::string_view rest = List(); !rest.empty();) {
    std::string_view name = TakeName(&rest);
    if (name.empty() || Has(kSwitches, name) || Has(kGuards, name)) continue;
    sentences.push_back("LONGWIRE_DISABLE names '" + std::string(name) +
                        "', which is no optimisation; see docs/switches.md");
  }
  return sentences;
}

std::string_view DisabledList() { return List(); }

bool IsDisabled(std::string_view name) {
  for (std::string_view rest = List(); !rest.empty();) {
    if (TakeName(&rest) == name) return true;
  }
  return false;
}

}  // namespace longwire::wire
