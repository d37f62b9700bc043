#include "cli/pictures/clock_text.h"

#include <cmath>
#include <cstdio>
#include <ctime>

namespace longwire::cli {
namespace {

constexpr double kMarks = 10;
constexpr double kSteps[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,   2,
                             5,     10,    15,    30,   60,   120,  300, 600, 900, 1800};
constexpr double kHour = 3600;

std::string Formatted(const char* format, std::time_t time) {
  char text[64];
  std::tm parts{};
  localtime_r(&time, &parts);
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

}  // namespace

double ClockStep(double span) {
  for (double step : kSteps) {
    if (span / step <= kMarks) return step;
  }
  return kHour * std::ceil(span / kHour / kMarks);
}

std::string ClockText(double time, double step) {
  const int digits = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  // 0.9996 s of three digits are the next second.
  const double scale = std::pow(10, digits);
  const double rounded = std::round(time * scale) / scale;
  const double whole = std::floor(rounded);
  std::string text = Formatted("%H:%M:%S", static_cast<std::time_t>(whole));
  if (digits == 0) return text;
  char fraction[32];
  std::snprintf(fraction, sizeof(fraction), "%.*f", digits, rounded - whole);
  return text + (fraction + 1);
}

std::string DayText(double time) { return Formatted("%Y-%m-%d", static_cast<std::time_t>(time)); }

std::string ZoneText(double time) { return Formatted("%Z", static_cast<std::time_t>(time)); }

}  // namespace longwire::cli
