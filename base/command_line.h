// The command lines of our processes: long options, among them --help and --version.
#pragma once

#include <getopt.h>

#include <functional>
#include <optional>
#include <string>

namespace longwire::base {

// What to print instead of starting, and the exit status: 0 if the text was asked for.
struct Refusal {
  std::string text;
  int status = 2;
};

// Codes of these two in a list of options.
inline constexpr int kHelpCode = 1;
inline constexpr int kVersionCode = 2;

struct Program {
  std::string name;
  std::string version;
  const char* help;
  const option* options;  // the last one is empty
};

// Calls apply(code, value) for each option, the value empty where it has none; what that returns is
// wrong with it. False with a refusal. getopt prints what it does not know itself.
bool ReadOptions(const Program& program, int count, char** arguments,
                 const std::function<std::string(int code, const std::string& value)>& apply,
                 Refusal* refusal);

}  // namespace longwire::base
