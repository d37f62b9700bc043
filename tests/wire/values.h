// Fills any call with values from a seed, through the generated visitors.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "longwire/for_each_call.h"

namespace longwire::calls {

class Filler {
 public:
  explicit Filler(uint32_t seed) : random_(seed) {}

  template <class T>
  void operator()(const char*, T& field) {
    Fill(field);
  }

 private:
  void Fill(bool& value) { value = random_() % 2 != 0; }
  void Fill(std::string_view& text) {
    std::string letters(random_() % 20, '\0');
    for (char& c : letters) c = static_cast<char>(random_());
    text = texts_.emplace_back(std::move(letters));
  }
  void Fill(std::span<const std::byte>& data) {
    std::string_view text;
    Fill(text);
    data = std::as_bytes(std::span(text));
  }
  template <class T>
  void Fill(std::vector<T>& list) {
    list.resize(random_() % 5);
    for (T& element : list) Fill(element);
  }
  template <class T>
  void Fill(std::optional<T>& value) {
    value.reset();
    if (random_() % 2 != 0) Fill(value.emplace());
  }
  template <size_t N>
  void Fill(std::array<std::byte, N>& bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  }
  template <class T>
  void Fill(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      uint64_t bits = (uint64_t{random_()} << 32) | random_();
      std::memcpy(&value, &bits, sizeof(value));
    } else {
      VisitFields(value, *this);  // a record
    }
  }

  std::mt19937 random_;
  std::deque<std::string> texts_;  // what the views point into
};

template <class T>
std::vector<std::byte> Encoded(const T& value) {
  wire::Writer writer;
  value.Encode(writer);
  const auto bytes = writer.span();
  return {bytes.begin(), bytes.end()};
}

}  // namespace longwire::calls
