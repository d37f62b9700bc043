// Reading from a code image, whose numbers are not trusted.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace longwire::worker {

// The T at an offset, if it is there.
template <class T>
std::optional<T> At(std::span<const char> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The text at an offset, up to its zero or the end; empty where there is none.
inline std::string_view NameAt(std::span<const char> file, uint64_t offset) {
  if (offset >= file.size()) return {};
  return {file.data() + offset, strnlen(file.data() + offset, file.size() - offset)};
}

}  // namespace longwire::worker
