// Times of the clock, by this host's time zone (TZ).
#pragma once

#include <string>

namespace longwire::cli {

// Seconds between two marks of a span in seconds: at most ten, at times that people like.
double ClockStep(double span);
// "20:15:03", with as many digits behind the point as the step needs. `time`: since 1970.
std::string ClockText(double time, double step);
std::string DayText(double time);   // "2026-11-26"
std::string ZoneText(double time);  // "UTC", "CET"

}  // namespace longwire::cli
