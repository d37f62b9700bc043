#include "cli/options.h"

#include <cstdio>

namespace longwire::cli {

bool IsHelp(std::string_view argument) { return argument == "--help" || argument == "-h"; }

Taken TakeOption(const char* command, const Arguments& arguments, std::string_view option,
                 size_t* i, std::string* value) {
  std::string_view word = arguments[*i];
  if (!word.starts_with(option)) return Taken::kNo;
  word.remove_prefix(option.size());
  if (word.starts_with("=")) {
    *value = word.substr(1);
    return Taken::kYes;
  }
  if (!word.empty()) return Taken::kNo;
  if (*i + 1 < arguments.size() && arguments[*i + 1] != "--") {
    *value = arguments[++*i];
    return Taken::kYes;
  }
  std::fprintf(stderr, "longwire %s: %s needs a value; see longwire %s --help\n", command,
               std::string(option).c_str(), command);
  return Taken::kBad;
}

}  // namespace longwire::cli
