#include "cli/text.h"

#include <cstdio>

namespace longwire::cli {

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string SecondsText(double seconds) {
  char text[48];
  long whole = static_cast<long>(seconds);
  if (whole < 100) {
    std::snprintf(text, sizeof(text), "%.1f s", seconds);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%ld min %02ld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%ld h %02ld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string Printable(std::string_view text) {
  std::string clean;
  for (char c : text) clean += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return clean;
}

}  // namespace longwire::cli
