// The file to which records of usage are appended, a line each, and the files before it: FILE,
// FILE.1, FILE.2 and FILE.3, together never larger than the limit. Used by one thread.
#pragma once

#include <cstdint>
#include <string>

namespace longwire::daemon {

class UsageFile {
 public:
  static constexpr uint32_t kFiles = 4;

  // Without a path nothing is written. `limit`: bytes of all files together.
  UsageFile(std::string path, uint64_t limit) : path_(std::move(path)), limit_(limit) {}

  // The line is written as a whole, or not at all: then false with a sentence.
  bool Append(const std::string& line, std::string* sentence);
  const std::string& path() const { return path_; }

  // The n-th file; the 0th is written, higher ones are older.
  static std::string NameOf(const std::string& path, uint32_t number);

 private:
  // Makes room for a new FILE. False with errno.
  bool Rotate();

  const std::string path_;
  const uint64_t limit_;
};

}  // namespace longwire::daemon
