#include "server/rules/pattern.h"

#include "wire/guards.h"

namespace longwire::rules {

bool Matches(std::string_view pattern, std::string_view text) {
  size_t at = 0, next = 0;
  // Where the last star stands, and where the text goes on if it takes one letter more.
  size_t star = std::string_view::npos, retry = 0;
  while (next < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = next;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[next])) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      next = ++retry;
    } else {
      return false;
    }
  }
  while ((at < pattern.size() || wire::kPlantedBug) && pattern[at] == '*') ++at;
  return at == pattern.size();
}

bool IsExact(std::string_view pattern) {
  return !pattern.empty() && pattern.find_first_of("*?") == std::string_view::npos;
}

bool MatchesProgram(std::string_view pattern, std::string_view program) {
  const size_t slash = program.rfind('/');
  return Matches(pattern, program) ||
         (slash != std::string_view::npos && Matches(pattern, program.substr(slash + 1)));
}

}  // namespace longwire::rules
