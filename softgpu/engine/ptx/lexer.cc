#include "softgpu/engine/ptx/lexer.h"

#include <bit>
#include <cstdlib>

namespace softgpu {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool IsNamePart(char c) { return IsDigit(c) || (IsNameStart(c) && c != '%'); }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> Run() {
    std::vector<Token> tokens;
    tokens.reserve(text_.size() / 4 + 16);
    while (SkipBlanks()) tokens.push_back(Next());
    tokens.push_back(Token{Token::Kind::kEnd, "", 0, line_});
    return tokens;
  }

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  // Skips blanks and comments; false at the end of the text (or at a NUL, which ends PTX).
  bool SkipBlanks() {
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (c == '\0') return false;
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++pos_;
      } else if (c == '/' && At(pos_ + 1) == '/') {
        while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      } else if (c == '/' && At(pos_ + 1) == '*') {
        SkipBlockComment();
      } else {
        return true;
      }
    }
    return false;
  }

  void SkipBlockComment() {
    size_t end = text_.find("*/", pos_ + 2);
    if (end == std::string_view::npos) throw PtxError(line_, "comment without end");
    for (; pos_ < end; ++pos_) line_ += text_[pos_] == '\n';
    pos_ = end + 2;
  }

  Token Make(Token::Kind kind, size_t start, uint64_t value = 0) {
    return Token{kind, text_.substr(start, pos_ - start), value, line_};
  }

  Token Next() {
    size_t start = pos_;
    char c = text_[pos_];
    if (IsNameStart(c)) {
      ++pos_;
      while (IsNamePart(At(pos_))) ++pos_;
      return Make(Token::Kind::kIdentifier, start);
    }
    if (c == '.' && (IsNamePart(At(pos_ + 1)))) return Directive();
    if (IsDigit(c)) return Number();
    if (c == '"') return String();
    ++pos_;
    return Make(Token::Kind::kPunctuation, start);
  }

  Token Directive() {
    size_t start = pos_++;
    while (true) {
      if (IsNamePart(At(pos_))) {
        ++pos_;
      } else if (At(pos_) == ':' && At(pos_ + 1) == ':' && IsNamePart(At(pos_ + 2))) {
        pos_ += 2;
      } else {
        return Make(Token::Kind::kDirective, start);
      }
    }
  }

  Token String() {
    size_t start = ++pos_;
    while (pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\n') ++pos_;
    if (At(pos_) != '"') throw PtxError(line_, "string without end");
    Token token = Make(Token::Kind::kString, start);
    ++pos_;
    return token;
  }

  // 0x… 0b… 0… decimal, 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX, and decimal fractions.
  Token Number() {
    size_t start = pos_;
    char second = At(pos_ + 1);
    if (text_[pos_] == '0' && (second == 'f' || second == 'F')) {
      return HexFloat(8, Token::Kind::kFloat32);
    }
    if (text_[pos_] == '0' && (second == 'd' || second == 'D')) {
      return HexFloat(16, Token::Kind::kFloat64);
    }
    uint64_t base = 10;
    if (text_[pos_] == '0' && (second == 'x' || second == 'X')) {
      base = 16;
    } else if (text_[pos_] == '0' && (second == 'b' || second == 'B')) {
      base = 2;
    } else if (text_[pos_] == '0' && IsDigit(second)) {
      base = 8;
    }
    if (base == 16 || base == 2) pos_ += 2;
    uint64_t value = 0;
    int digit = 0;
    while ((digit = HexValue(At(pos_))) >= 0 && static_cast<uint64_t>(digit) < base) {
      value = value * base + static_cast<uint64_t>(digit);
      ++pos_;
    }
    if (base == 10 && At(pos_) == '.' && IsDigit(At(pos_ + 1))) return DecimalFraction(start);
    if (At(pos_) == 'U') ++pos_;
    return Make(Token::Kind::kInteger, start, value);
  }

  Token HexFloat(int digits, Token::Kind kind) {
    size_t start = pos_;
    pos_ += 2;
    uint64_t value = 0;
    for (int i = 0; i < digits; ++i) {
      int digit = HexValue(At(pos_));
      if (digit < 0) throw PtxError(line_, "bad floating-point literal");
      value = value << 4 | static_cast<uint64_t>(digit);
      ++pos_;
    }
    return Make(kind, start, value);
  }

  Token DecimalFraction(size_t start) {
    ++pos_;
    while (IsDigit(At(pos_))) ++pos_;
    if (At(pos_) == 'e' || At(pos_) == 'E') {
      ++pos_;
      if (At(pos_) == '-' || At(pos_) == '+') ++pos_;
      while (IsDigit(At(pos_))) ++pos_;
    }
    std::string digits(text_.substr(start, pos_ - start));
    return Make(Token::Kind::kFloat64, start,
                std::bit_cast<uint64_t>(std::strtod(digits.c_str(), nullptr)));
  }

  std::string_view text_;
  size_t pos_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view text) { return Lexer(text).Run(); }

}  // namespace softgpu
