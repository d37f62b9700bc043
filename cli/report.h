// Prints the findings of longwire doctor, a line each, and counts the problems.
#pragma once

#include <cstdio>
#include <string>

namespace longwire::cli {

class Report {
 public:
  void Good(const std::string& what) { std::printf("  ok      %s\n", what.c_str()); }
  void Note(const std::string& what) { std::printf("  note    %s\n", what.c_str()); }
  void Bad(const std::string& what, const std::string& remedy) {
    ++problems_;
    std::printf("  PROBLEM %s\n          remedy: %s\n", what.c_str(), remedy.c_str());
  }
  int problems() const { return problems_; }

 private:
  int problems_ = 0;
};

}  // namespace longwire::cli
