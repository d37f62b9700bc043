#include "server/config/text.h"

#include <cstdint>

namespace longwire::config {
namespace {

constexpr size_t kLongestQuote = 60;

}  // namespace

size_t CharacterBytes(const std::string& text, size_t at) {
  auto byte = [&](size_t i) {
    return static_cast<unsigned char>(at + i < text.size() ? text[at + i] : 0);
  };
  if (byte(0) < 0x80) return 1;
  size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  uint32_t value = byte(0) & (0xFF >> (bytes + 1));
  if (byte(0) < 0xC2 || byte(0) > 0xF4) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = value >= 0xD800 && value < 0xE000;
  return value < kLeast[bytes] || value > 0x10FFFF || surrogate ? 0 : bytes;
}

bool IsLine(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    size_t bytes = CharacterBytes(text, at);
    if (bytes == 0 || IsControl(text[at])) return false;
    at += bytes;
  }
  return true;
}

std::string Plain(const std::string& text, size_t longest) {
  std::string plain = text.substr(0, longest);
  for (char& c : plain) {
    if (IsControl(c)) c = '?';
  }
  if (plain.size() == text.size()) return plain;
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t end = longest;
  while (end > 0 && continues(text[end])) --end;
  return plain.substr(0, end) + "...";
}

std::string Quoted(const std::string& text) { return "'" + Plain(text, kLongestQuote) + "'"; }

std::string Alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace longwire::config
