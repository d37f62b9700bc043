// Parsing of the commands' options.
#pragma once

#include <string>
#include <string_view>

#include "cli/commands.h"

namespace longwire::cli {

// --help or -h.
bool IsHelp(std::string_view argument);

enum class Taken {
  kNo,   // the argument is something else
  kYes,  // *i is at the last argument that belongs to the option
  kBad,  // it has no value; a sentence is on standard error
};

// Takes `option` and its value, "--option value" or "--option=value", from the arguments at *i. The
// word -- is not accepted as a value: it precedes a program.
Taken TakeOption(const char* command, const Arguments& arguments, std::string_view option,
                 size_t* i, std::string* value);

}  // namespace longwire::cli
