#include "wire/disabled_names.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/environment.h"

namespace longwire::wire {
namespace {

std::string& List() {
  static std::string& list = *new std::string([] {
    const char* value = base::Environment("LONGWIRE_DISABLE");
    return value == nullptr ? "" : value;
  }());
  return list;
}

}  // namespace

std::string_view TakeName(std::string_view* list) {
  constexpr const char* kBlanks = " \t\r\n";
  std::string_view name = list->substr(0, list->find(','));
  list->remove_prefix(std::min(name.size() + 1, list->size()));
  name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
  return name.substr(0, name.find_last_not_of(kBlanks) + 1);
}

void SetDisabled(std::string_view list) {
  if (List() != list) List() = list;  // tests have a worker in the program's process, which asks
}

std::string_view DisabledList() { return List(); }

bool IsDisabled(std::string_view name) {
  for (std::string_view rest = List(); !rest.empty();) {
    if (TakeName(&rest) == name) return true;
  }
  return false;
}

}  // namespace longwire::wire
