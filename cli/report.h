// The findings of longwire doctor: a line each as they come, or all of them for programs at the
// end.
#pragma once

#include <string>

namespace longwire::cli {

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  // What the next findings are about.
  void Title(const std::string& what);
  void Good(const std::string& what) { Add("ok", what, ""); }
  void Note(const std::string& what) { Add("note", what, ""); }
  void Bad(const std::string& what, const std::string& remedy);
  // The number of problems.
  void End();
  int problems() const { return problems_; }

 private:
  void Add(const char* kind, const std::string& what, const std::string& remedy);

  const bool json_;
  std::string title_;
  std::string findings_;  // as JSON
  int problems_ = 0;
};

}  // namespace longwire::cli
