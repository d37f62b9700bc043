// Files of the kernel that are written at once.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace longwire::walls {

inline bool WriteFile(const std::string& path, const std::string& text) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool good = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return good;
}

}  // namespace longwire::walls
