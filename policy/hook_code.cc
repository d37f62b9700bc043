#include "policy/hook_code.h"

namespace longwire::policy {

std::string HookCode::Place(uint32_t instruction) const {
  std::string place = function;
  auto line = lines.upper_bound(instruction);
  if (line != lines.begin()) {
    const std::string& text = std::prev(line)->second;
    const size_t colon = text.rfind(':');
    place += ", line " + text.substr(colon + 1) + " of " + text.substr(0, colon);
  }
  return place + " (instruction " + std::to_string(instruction) + ")";
}

}  // namespace longwire::policy
