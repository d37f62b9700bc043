// Text from others, such as a client's name of its program, as a log, a page of status and a
// terminal may show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longwire::base {

struct Character {
  char32_t code = 0;
  size_t bytes = 0;    // of the text; 1 for a byte that is not UTF-8
  bool valid = false;  // false: a byte that is not UTF-8
};

// The first character of the text, which is not empty.
Character FirstCharacter(std::string_view text);

// False for control characters (C0, DEL, C1), for those that end a line, and for those that change
// the direction in which text is shown: by these text could pass for other text.
bool MayBeShown(char32_t code);

// The text with a '?' for each character that may not be shown and each byte that is not UTF-8.
std::string Printable(std::string_view text);

}  // namespace longwire::base
