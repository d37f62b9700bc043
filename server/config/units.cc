#include "server/config/units.h"

namespace longwire::config {
namespace {

constexpr Unit kByteUnits[] = {{"TiB", uint64_t{1} << 40},
                               {"GiB", uint64_t{1} << 30},
                               {"MiB", uint64_t{1} << 20},
                               {"KiB", uint64_t{1} << 10},
                               {"", 1}};
constexpr Unit kTimeUnits[] = {
    {"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};

}  // namespace

std::span<const Unit> UnitsOf(Kind kind) {
  if (kind == BYTES) return kByteUnits;
  if (kind == DURATION) return kTimeUnits;
  return {};
}

std::string UnitNames(Kind kind) {
  std::string names;
  for (const Unit& unit : UnitsOf(kind)) {
    if (!unit.name.empty()) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  return names;
}

std::string UnitText(Kind kind, uint64_t value) {
  if (kind == DURATION && value == kForever) return "forever";
  for (const Unit& unit : UnitsOf(kind)) {
    if (value == 0 || value % unit.size != 0) continue;
    return std::to_string(value / unit.size) + std::string(unit.name);
  }
  return std::to_string(value) + (kind == DURATION ? "s" : "");
}

}  // namespace longwire::config
