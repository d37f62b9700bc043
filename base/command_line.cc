#include "base/command_line.h"

namespace longwire::base {

bool ReadOptions(const Program& program, int count, char** arguments,
                 const std::function<std::string(int code, const std::string& value)>& apply,
                 Refusal* refusal) {
  const std::string see = "see " + program.name + " --help\n";
  optind = 1;
  for (int code = 0; (code = getopt_long(count, arguments, "", program.options, nullptr)) != -1;) {
    if (code == kHelpCode || code == kVersionCode) {
      const std::string version = program.name + " " + program.version + "\n";
      *refusal = {code == kHelpCode ? program.help : version, 0};
      return false;
    }
    if (code == '?') {
      refusal->text = see;
      return false;
    }
    const std::string problem = apply(code, optarg == nullptr ? "" : optarg);
    if (problem.empty()) continue;
    refusal->text = program.name + ": " + problem + "; " + see;
    return false;
  }
  if (optind == count) return true;
  refusal->text = program.name + ": unexpected argument " + arguments[optind] + "; " + see;
  return false;
}

}  // namespace longwire::base
