#include "cli/usage/options.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "wire/number.h"

namespace longwire::cli::usage {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLongestAgo = 36500;  // in any unit: sums stay far from an overflow

bool ParseAgo(const std::string& text, int64_t now, int64_t* time) {
  static constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return false;
  auto count = wire::ParseNumber(text.substr(0, digits), 0, kLongestAgo);
  for (const auto& [unit, seconds] : kUnits) {
    if (!count || text.substr(digits) != unit) continue;
    *time = now - *count * seconds * kSecond;
    return true;
  }
  return false;
}

// True if the rest of the text is a fraction of a second or nothing, and then Z or nothing.
bool ParseFraction(const char* rest, int64_t* microseconds) {
  *microseconds = 0;
  if (*rest == '.') {
    int64_t unit = kSecond / 10;
    if (rest[1] < '0' || rest[1] > '9') return false;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) {
      *microseconds += (*rest - '0') * unit;
    }
  }
  if (*rest == 'Z') ++rest;
  return *rest == '\0';
}

bool ParseDate(const std::string& text, int64_t* time) {
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    tm parts{};
    int64_t fraction = 0;
    const char* rest = strptime(text.c_str(), format, &parts);
    if (rest == nullptr || !ParseFraction(rest, &fraction)) continue;
    const tm given = parts;
    const time_t seconds = timegm(&parts);
    // What is no day, such as the 31st of April, would become another one.
    if (parts.tm_mday != given.tm_mday || parts.tm_mon != given.tm_mon) return false;
    *time = int64_t{seconds} * kSecond + fraction;
    return true;
  }
  return false;
}

By ParseBy(const std::string& text) {
  static constexpr std::pair<const char*, By> kNames[] = {
      {"tenant", By::kTenant}, {"identity", By::kIdentity}, {"program", By::kProgram}};
  for (const auto& [name, value] : kNames) {
    if (text == name) return value;
  }
  RefuseValue("--by expects tenant, identity or program, found '" + text + "'");
}

int64_t TimeOf(const char* option, const std::string& text, int64_t now) {
  int64_t time = 0;
  if (ParseTime(text, now, &time)) return time;
  RefuseValue(std::string(option) +
              " expects a time in UTC, such as 2026-11-26 or 2026-11-26T19:20, or so long ago, "
              "such as 36h or 7d, found '" +
              text + "'");
}

}  // namespace

bool ParseTime(const std::string& text, int64_t now, int64_t* time) {
  return ParseAgo(text, now, time) || ParseDate(text, time);
}

void Describe(CLI::App& command, int64_t now, Options* options) {
  command
      .add_option_function<std::string>(
          "--since",
          [=](const std::string& text) { options->since = TimeOf("--since", text, now); },
          "only sessions that ended then or later: a time in UTC, such as 2026-11-26 or "
          "2026-11-26T19:20, or so long ago: 90min, 36h, 7d, 4w")
      ->type_name("WHEN");
  command
      .add_option_function<std::string>(
          "--until",
          [=](const std::string& text) { options->until = TimeOf("--until", text, now); },
          "only sessions that ended before")
      ->type_name("WHEN");
  command
      .add_option_function<std::string>(
          "--by", [=](const std::string& text) { options->by = ParseBy(text); },
          "a line for each tenant (default), identity or program")
      ->type_name("WHAT");
  command
      .add_option("--file", options->file,
                  "the records (default: usage.file of /etc/longwire/longwired.yaml, else "
                  "/var/lib/longwire/usage.jsonl); FILE.1, FILE.2 and FILE.3 are read, too")
      ->type_name("FILE");
  command.add_flag("--json", options->json, "the same for programs");
}

}  // namespace longwire::cli::usage
