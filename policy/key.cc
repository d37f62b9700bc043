#include "policy/key.h"

#include <charconv>
#include <string_view>

#include "base/name_number.h"

namespace longwire::policy {

std::optional<uint64_t> ParseKey(const std::string& key) {
  for (const std::string_view prefix : {"tenant:", "kernel:"}) {
    if (!key.starts_with(prefix)) continue;
    return base::NumberOfName(std::string_view(key).substr(prefix.size()));
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return number;
}

}  // namespace longwire::policy
