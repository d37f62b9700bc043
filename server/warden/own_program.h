// Whether an upgrade has replaced the file that this process runs.
#pragma once

#include <sys/types.h>

#include <string>

namespace longwire::warden {

class OwnProgram {
 public:
  // Of a file; by default this process's own.
  explicit OwnProgram(const std::string& path = "");
  // While the file is missing an upgrade may be under way: not yet.
  bool WasReplaced() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace longwire::warden
