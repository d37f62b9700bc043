#include "cli/text.h"

#include <cstdio>

#include "base/json.h"
#include "base/printable.h"

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

std::string JsonString(std::string_view text) { return base::JsonString(text); }

std::string Printable(std::string_view text) { return base::Printable(text); }

}  // namespace longwire::cli
