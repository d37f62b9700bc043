#include "base/json.h"

#include <cstdio>

#include "base/printable.h"

namespace longwire::base {
namespace {

constexpr char32_t kReplacement = 0xfffd;  // for bytes that are no character

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (!character.valid || !MayBeShown(character.code)) {
      char escape[8];
      const char32_t code = character.valid ? character.code : kReplacement;
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(code));
      json += escape;
    } else {
      if (text[0] == '"' || text[0] == '\\') json += '\\';
      json.append(text.substr(0, character.bytes));
    }
    text.remove_prefix(character.bytes);
  }
  return json + "\"";
}

}  // namespace longwire::base
