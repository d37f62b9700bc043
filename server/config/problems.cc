#include "server/config/problems.h"

#include <algorithm>
#include <tuple>

namespace longwire::config {
namespace {

// A file of nothing but mistakes must not cost more memory than itself.
constexpr size_t kMostKept = 1000;
constexpr size_t kLongestQuote = 60;

}  // namespace

std::string Place::Text() const {
  if (line == 0) return origin;
  return origin + ":" + std::to_string(line) + ":" + std::to_string(column);
}

void Problems::Add(const Place& place, const std::string& sentence) {
  ++count_;
  if (kept_.size() < kMostKept) kept_.push_back({place, sentence});
}

std::vector<std::string> Problems::Sentences() const {
  std::vector<Problem> sorted = kept_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  std::vector<std::string> sentences;
  for (const Problem& problem : sorted) {
    if (sentences.size() == kMostTold) break;
    sentences.push_back(problem.place.Text() + ": " + problem.sentence);
  }
  if (count_ > kMostTold) {
    sentences.push_back("and " + std::to_string(count_ - kMostTold) + " more");
  }
  return sentences;
}

std::string Problems::Text() const {
  std::string text;
  for (const std::string& sentence : Sentences()) text += sentence + "\n";
  return text;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) {
    if (quoted.size() > kLongestQuote) {
      // Not within a character of several bytes.
      while ((static_cast<unsigned char>(quoted.back()) & 0xC0) == 0x80) quoted.pop_back();
      if (static_cast<unsigned char>(quoted.back()) >= 0xC0) quoted.pop_back();
      return quoted + "...'";
    }
    quoted += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return quoted + "'";
}

std::string Alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace longwire::config
