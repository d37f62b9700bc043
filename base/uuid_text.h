// A device's UUID as NVIDIA's tools write it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace longwire::base {

// `uuid`: its 16 bytes. Empty for another number of them: the driver did not say.
inline std::string UuidText(std::string_view uuid) {
  if (uuid.size() != 16) return {};
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

}  // namespace longwire::base
