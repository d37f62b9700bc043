#include "base/printable.h"

#include <cstdint>

namespace longwire::base {
namespace {

// How many bytes a character has that begins with this one; 0: none begins so.
size_t BytesOf(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

// The shortest form alone is valid, without surrogates.
bool FitsItsLength(char32_t code, size_t bytes) {
  if (bytes == 3) return code >= 0x800 && (code < 0xd800 || code > 0xdfff);
  return bytes != 4 || (code >= 0x10000 && code <= 0x10ffff);
}

}  // namespace

Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const Character broken{first, 1, false};
  const size_t bytes = BytesOf(first);
  if (bytes == 0 || bytes > text.size()) return broken;
  if (bytes == 1) return {first, 1, true};
  auto code = static_cast<char32_t>(first & (0xff >> (bytes + 1)));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return broken;
    code = code << 6 | static_cast<char32_t>(next & 0x3f);
  }
  return FitsItsLength(code, bytes) ? Character{code, bytes, true} : broken;
}

bool MayBeShown(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool line_end = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !control && !line_end && !direction;
}

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (character.valid && MayBeShown(character.code)) {
      clean.append(text.substr(0, character.bytes));
    } else {
      clean += '?';
    }
    text.remove_prefix(character.bytes);
  }
  return clean;
}

}  // namespace longwire::base
