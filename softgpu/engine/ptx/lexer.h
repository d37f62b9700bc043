// Splits PTX text into tokens. Views point into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

// PTX that cannot be parsed; caught in Program::Load and answered as CUDA_ERROR_INVALID_PTX.
struct PtxError : std::runtime_error {
  PtxError(uint32_t line, const std::string& what)
      : std::runtime_error("PTX line " + std::to_string(line) + ": " + what) {}
};

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kIdentifier,  // names, %registers, $labels
    kDirective,   // with its dot: .global, .u32, .shared::cta
    kInteger,
    kFloat32,  // value holds the 32 bits
    kFloat64,  // value holds the 64 bits
    kString,   // text without the quotes
    kPunctuation,
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  uint64_t value = 0;
  uint32_t line = 0;

  bool Is(char c) const { return kind == Kind::kPunctuation && text[0] == c; }
  bool Is(std::string_view s) const { return kind != Kind::kString && text == s; }
};

// Ends with one kEnd token. Throws PtxError.
std::vector<Token> Tokenize(std::string_view text);

}  // namespace softgpu
