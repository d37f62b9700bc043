#include "cli/top/options.h"

#include <charconv>

namespace longwire::cli::top {
namespace {

constexpr double kShortest = 0.1;  // seconds
constexpr double kLongest = 3600;

double ParseInterval(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  auto [rest, problem] = std::from_chars(text.data(), end, seconds);
  const bool number = problem == std::errc() && rest == end;
  if (number && seconds >= kShortest && seconds <= kLongest) return seconds;
  RefuseValue("--interval expects a number of seconds from 0.1 to 3600, found '" + text + "'");
}

}  // namespace

void Describe(CLI::App& command, Options* options) {
  command
      .add_option_function<std::string>(
          "--interval", [=](const std::string& text) { options->interval = ParseInterval(text); },
          "between two pictures, and what rates are measured over (default 1)")
      ->type_name("SECONDS");
  command.add_flag("--once", options->once, "one picture as text, after one interval");
  command.add_flag("--pool", options->pool,
                   "the hosts of the server's pool, and who waits there for a place");
  command.add_flag("--kernels", options->kernels,
                   "the kernels of programs: launches, times, occupancy and what limits it");
  command.add_flag("--json", options->json,
                   "with --once: one JSON object; what is not known is null");
}

}  // namespace longwire::cli::top
