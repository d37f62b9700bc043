// What is wrong with a configuration and where: all of it is collected, so that a file is corrected
// once and not one mistake at a time.
#pragma once

#include <string>
#include <vector>

namespace longwire::config {

// Where something was said: in a file, or by an option of the command line (line 0 then).
struct Place {
  std::string origin;
  int line = 0;    // from 1
  int column = 0;  // from 1, in bytes

  std::string Text() const;  // "file:line:column", "--option"
};

class Problems {
 public:
  // Control characters and what goes beyond a thousand letters are not taken over.
  void Add(const Place& place, const std::string& sentence);

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  // "place: sentence" of the first kMaxProblemsShown in the order of the file, then how many more
  // there are.
  std::vector<std::string> Sentences() const;
  // The same, a line each.
  std::string Text() const;

  static constexpr size_t kMaxProblemsShown = 20;

 private:
  struct Problem {
    Place place;
    std::string sentence;
  };
  std::vector<Problem> kept_;
  size_t count_ = 0;
};

}  // namespace longwire::config
