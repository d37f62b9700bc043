// Arguments of calls that an input chooses: mostly small numbers, which are often ids of something
// that exists, then numbers of the worker's, limits of sizes, and anything.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "longwire/for_each_call.h"

namespace longwire::fuzz {

class ChosenValues {
 public:
  explicit ChosenValues(std::span<const uint8_t> input) : input_(input) {}

  bool empty() const { return input_.empty(); }
  uint8_t Byte() {
    if (input_.empty()) return 0;
    uint8_t byte = input_.front();
    input_ = input_.subspan(1);
    return byte;
  }
  size_t Below(size_t end) {
    size_t number = Byte();
    if (end > 256) number = number << 8 | Byte();
    return number % end;
  }
  uint64_t Small() { return Byte() % 8; }
  uint64_t Number() {
    constexpr uint64_t kWorkers = uint64_t{1} << 63;  // its ids begin here
    constexpr std::array kLimits = {UINT64_MAX,        uint64_t{1} << 63, uint64_t{1} << 62,
                                    uint64_t{1} << 46, uint64_t{1} << 32, uint64_t{0xffffffff},
                                    uint64_t{1} << 31, uint64_t{1} << 20, uint64_t{65536},
                                    uint64_t{4096},    UINT64_MAX - 4095, uint64_t{0x7fffffff}};
    uint8_t kind = Byte();
    if (kind < 128) return kind % 8;
    if (kind < 192) return kWorkers + kind % 16;
    if (kind < 240) return kLimits[kind % kLimits.size()];
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof(number); ++i) number = number << 8 | Byte();
    return number;
  }

  // A visitor of a call's fields.
  template <class T>
  void operator()(const char*, T& field) {
    Choose(field);
  }

 private:
  void Choose(bool& value) { value = Byte() % 2 != 0; }
  void Choose(std::string_view& text) {
    // "kernel" is a function of the fake driver's.
    std::string letters = Byte() % 2 == 0 ? "kernel" : std::string(Byte() % 40, 'x');
    text = texts_.emplace_back(std::move(letters));
  }
  void Choose(std::span<const std::byte>& data) {
    constexpr std::array<size_t, 10> kSizes = {0, 1, 8, 32, 48, 64, 104, 112, 144, 600};
    std::string bytes(kSizes[Byte() % kSizes.size()], '\0');
    for (size_t i = 0; i < bytes.size() && !input_.empty(); i += 1 + Byte() % 32) {
      bytes[i] = static_cast<char>(Byte());
    }
    data = std::as_bytes(std::span(texts_.emplace_back(std::move(bytes))));
  }
  template <class T>
  void Choose(std::vector<T>& list) {
    // Mostly as long as the one before: lists belong together.
    uint8_t size = Byte();
    if (size >= 128) size_ = size % 6 == 5 ? 100 : size % 6;
    list.resize(size_);
    for (T& element : list) Choose(element);
  }
  template <class T>
  void Choose(std::optional<T>& value) {
    value.reset();
    if (Byte() % 2 != 0) Choose(value.emplace());
  }
  template <size_t N>
  void Choose(std::array<std::byte, N>& bytes) {
    bytes.fill(std::byte{0});
    for (size_t i = 0; i < N && !input_.empty(); i += 1 + Byte() % 16) bytes[i] = std::byte{Byte()};
  }
  template <class T>
  void Choose(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(Number());
    } else {
      VisitFields(value, *this);  // a record
    }
  }

  std::span<const uint8_t> input_;
  size_t size_ = 0;                // of the newest list
  std::deque<std::string> texts_;  // what the views point into
};

}  // namespace longwire::fuzz
