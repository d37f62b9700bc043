// Text that comes from outside, and words for sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longwire::config {

// How many bytes the UTF-8 character has that begins there; 0 if there is none.
size_t CharacterBytes(const std::string& text, size_t at);
inline bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
// Whether it is UTF-8 without control characters.
bool IsLine(const std::string& text);

// The text without what could write on a terminal or begin a line of a log; cut if it is too long,
// not within a character.
std::string Plain(const std::string& text, size_t longest);
// The text as it may stand in a sentence.
std::string Quoted(const std::string& text);
// "a", "a or b", "a, b or c".
std::string Alternatives(const std::vector<std::string>& words);

}  // namespace longwire::config
