#include "server/config/problems.h"

#include <algorithm>
#include <tuple>

#include "server/config/text.h"

namespace longwire::config {
namespace {

// A file of nothing but mistakes must not cost more memory than itself.
constexpr size_t kMaxProblemsKept = 1000;
constexpr size_t kLongestSentence = 1000;

}  // namespace

std::string Place::Text() const {
  if (line == 0) return origin;
  return origin + ":" + std::to_string(line) + ":" + std::to_string(column);
}

void Problems::Add(const Place& place, const std::string& sentence) {
  ++count_;
  if (kept_.size() < kMaxProblemsKept) kept_.push_back({place, Plain(sentence, kLongestSentence)});
}

std::vector<std::string> Problems::Sentences() const {
  std::vector<Problem> sorted = kept_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  std::vector<std::string> sentences;
  for (const Problem& problem : sorted) {
    if (sentences.size() == kMaxProblemsShown) break;
    sentences.push_back(problem.place.Text() + ": " + problem.sentence);
  }
  if (count_ > kMaxProblemsShown) {
    sentences.push_back("and " + std::to_string(count_ - kMaxProblemsShown) + " more");
  }
  return sentences;
}

std::string Problems::Text() const {
  std::string text;
  for (const std::string& sentence : Sentences()) text += sentence + "\n";
  return text;
}

}  // namespace longwire::config
