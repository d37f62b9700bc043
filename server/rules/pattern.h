// Patterns of names: * stands for any letters, also none, ? for one.
#pragma once

#include <string_view>

namespace longwire::rules {

// Takes at most as many steps as pattern and text have letters multiplied, whatever they are.
bool Matches(std::string_view pattern, std::string_view text);
// True if the pattern can only match one name.
bool IsExact(std::string_view pattern);
// A program's path, or what stands behind its last slash.
bool MatchesProgram(std::string_view pattern, std::string_view program);

}  // namespace longwire::rules
