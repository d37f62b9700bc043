#include "cli/top/options.h"

#include <charconv>

namespace longwire::cli::top {
namespace {

constexpr double kShortest = 0.1;  // seconds
constexpr double kLongest = 3600;

bool ParseInterval(const std::string& text, double* seconds) {
  const char* end = text.data() + text.size();
  auto [rest, problem] = std::from_chars(text.data(), end, *seconds);
  return problem == std::errc() && rest == end && *seconds >= kShortest && *seconds <= kLongest;
}

}  // namespace

bool ParseOptions(const Arguments& arguments, Options* options, std::string* sentence) {
  sentence->clear();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (IsHelp(arguments[i])) return options->server.help = true;
    Taken taken = TakeConnectionOption("top", arguments, &i);
    std::string interval;
    if (taken == Taken::kNo) taken = TakeOption("top", arguments, "--interval", &i, &interval);
    if (taken == Taken::kBad) return false;
    if (taken == Taken::kYes && !interval.empty() && !ParseInterval(interval, &options->interval)) {
      *sentence = "--interval is a number of seconds from 0.1 to 3600, not '" + interval + "'.";
      return false;
    }
    if (taken == Taken::kYes) continue;
    if (arguments[i] == "--once" || arguments[i] == "--json") {
      (arguments[i] == "--once" ? options->once : options->json) = true;
      continue;
    }
    *sentence = "unknown option '" + arguments[i] + "'.";
    return false;
  }
  *sentence = "--json is for --once.";
  if (options->json && !options->once) return false;
  FindServer(&options->server);
  return true;
}

}  // namespace longwire::cli::top
