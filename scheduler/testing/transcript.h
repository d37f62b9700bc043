// Tests that are texts: a paragraph that says the property, then blocks of commands with what they
// print. Running one gives the same text again with what is printed now; the test compares the two,
// and --rewrite keeps the new one, to be reviewed as a difference.
//
//   # No decision names a closed session.
//
//   open 1 tenant=a devices=0
//   close 1
//   ----
//   0ms  1/0  open, no limits
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/types.h"

namespace longwire::scheduler::testing {

// One line: words, and words of the form name=value apart.
struct Command {
  explicit Command(const std::string& line);

  // The word at `index`; throws std::invalid_argument, as all below do, with a sentence.
  const std::string& Word(size_t index) const;
  bool Has(std::string_view word) const;
  // The value of name=value, or `otherwise`.
  std::string Text(const std::string& name, const std::string& otherwise) const;
  uint64_t Number(const std::string& name, uint64_t otherwise) const;
  Time Span(const std::string& name, Time otherwise) const;
  // Throws if a name=value was given that nobody asked for: a misspelt one must not be ignored.
  void CheckAllUsed() const;

  std::string line;
  std::vector<std::string> words;

 private:
  const std::string* Find(const std::string& name) const;
  std::map<std::string, std::string> values_;
  mutable std::map<std::string, bool> used_;
};

uint64_t ParseNumber(const std::string& text);
// "250us", "10ms", "1.5s", "never".
Time ParseTime(const std::string& text);
// "0", "10.25ms", "never".
std::string FormatTime(Time time);
// "80GiB", "2MiB", "0".
uint64_t ParseBytes(const std::string& text);

// Runs a block's commands and returns what they print.
using RunBlock = std::function<std::string(const std::vector<Command>&)>;

// The text with each block's output replaced. An exception becomes the block's output.
std::string RunTranscript(const std::string& text, const RunBlock& run);

}  // namespace longwire::scheduler::testing
