#include "wire/descriptors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace longwire::wire {

void Descriptor::Reset(int value) {
  if (value_ >= 0) {
    int reason = errno;  // why the caller gave the descriptor up
    close(value_);
    errno = reason;
  }
  value_ = value;
}

void SilenceStandardDescriptors() {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int number = STDIN_FILENO; null >= 0 && number <= STDERR_FILENO; ++number) {
    // A descriptor is no duplicate of itself and stays as it is.
    if (dup2(null, number) == null) fcntl(number, F_SETFD, 0);
  }
  if (null > STDERR_FILENO) close(null);
}

int AboveStandard(int made) {
  if (made < 0 || made > STDERR_FILENO) return made;
  int above = fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int reason = errno;
  close(made);
  errno = reason;
  return above;
}

Descriptor OpenFile(const char* path, int flags, mode_t mode) {
  return Descriptor(AboveStandard(open(path, flags | O_CLOEXEC, mode)));
}

Descriptor MemoryFile(const char* name, unsigned more_flags) {
  return Descriptor(AboveStandard(memfd_create(name, MFD_CLOEXEC | more_flags)));
}

Descriptor Duplicate(int descriptor) {
  return Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

std::FILE* OpenStream(const char* path, const char* mode) {
  int flags = O_RDONLY;
  if (mode[0] == 'w') flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags = O_WRONLY | O_CREAT | O_APPEND;
  Descriptor file = OpenFile(path, flags);
  std::FILE* stream = file.valid() ? fdopen(file.get(), mode) : nullptr;
  if (stream != nullptr) static_cast<void>(file.Release());
  return stream;
}

std::string ReadFile(const char* path, size_t most) {
  std::string text;
  char piece[4096];
  Descriptor file = OpenFile(path, O_RDONLY);
  while (file.valid() && text.size() < most) {
    ssize_t got = read(file.get(), piece, std::min(sizeof(piece), most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

OwnDescriptor::OwnDescriptor(Descriptor descriptor) {
  struct stat status {};
  if (!descriptor.valid() || fstat(descriptor.get(), &status) != 0) return;
  device_ = status.st_dev;
  file_ = status.st_ino;
  value_ = descriptor.Release();
}

OwnDescriptor::~OwnDescriptor() {
  if (get() >= 0) close(value_);
}

OwnDescriptor& OwnDescriptor::operator=(OwnDescriptor&& other) noexcept {
  std::swap(value_, other.value_);
  std::swap(device_, other.device_);
  std::swap(file_, other.file_);
  return *this;
}

int OwnDescriptor::get() const {
  struct stat status {};
  if (value_ < 0 || fstat(value_, &status) != 0) return -1;
  return status.st_dev == device_ && status.st_ino == file_ ? value_ : -1;
}

}  // namespace longwire::wire
