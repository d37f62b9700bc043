#include "server/warden/own_program.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace longwire::warden {

OwnProgram::OwnProgram(const std::string& path) : path_(path) {
  std::error_code error;
  if (path_.empty()) path_ = std::filesystem::read_symlink("/proc/self/exe", error);
  // By its link: that leads to the file even if it has been replaced already.
  struct stat own {};
  if (stat(path.empty() ? "/proc/self/exe" : path.c_str(), &own) != 0) return;
  device_ = own.st_dev;
  file_ = own.st_ino;
}

bool OwnProgram::WasReplaced() const {
  struct stat now {};
  if (file_ == 0 || stat(path_.c_str(), &now) != 0) return false;
  return now.st_dev != device_ || now.st_ino != file_;
}

}  // namespace longwire::warden
