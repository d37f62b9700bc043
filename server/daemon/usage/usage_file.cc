#include "server/daemon/usage/usage_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>

#include "base/read_write.h"
#include "base/reason.h"
#include "wire/descriptors.h"

namespace longwire::daemon {
namespace {

constexpr mode_t kMode = 0600;  // programs and hosts of all tenants are named there

wire::Descriptor OpenToAppend(const std::string& path, uint64_t* size) {
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_RDWR | O_APPEND | O_CREAT, kMode);
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return {};
  }
  *size = static_cast<uint64_t>(status.st_size);
  return file;
}

// A line that a full disk or the host's end has cut off stays one of its own.
bool EndsWithinLine(int file, uint64_t size) {
  char last = '\n';
  return size != 0 && pread(file, &last, 1, static_cast<off_t>(size - 1)) == 1 && last != '\n';
}

}  // namespace

std::string UsageFile::NameOf(const std::string& path, uint32_t number) {
  return number == 0 ? path : path + "." + std::to_string(number);
}

bool UsageFile::Rotate() {
  for (uint32_t number = kFiles - 1; number > 0; --number) {
    const std::string from = NameOf(path_, number - 1), to = NameOf(path_, number);
    if (rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) return false;
  }
  return true;
}

bool UsageFile::Append(const std::string& line, std::string* sentence) {
  if (path_.empty()) return true;
  *sentence = path_ + " cannot be written";
  uint64_t size = 0;
  wire::Descriptor file = OpenToAppend(path_, &size);
  if (file.valid() && size != 0 && size + line.size() + 2 > limit_ / kFiles) {
    file.Reset();
    if (Rotate()) file = OpenToAppend(path_, &size);
  }
  if (!file.valid()) {
    *sentence += ": " + base::Reason(errno);
    return false;
  }
  const std::string text = (EndsWithinLine(file.get(), size) ? "\n" : "") + line + "\n";
  if (base::WriteAll(file.get(), std::as_bytes(std::span(text)))) return true;
  *sentence += ": " + base::Reason(errno);
  // What was written of it would be a damaged line.
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    *sentence += "; a part of a line stays at its end";
  }
  return false;
}

}  // namespace longwire::daemon
