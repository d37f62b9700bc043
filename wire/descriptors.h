// Descriptors and making them. A process may have been started with a standard descriptor closed:
// what it opens next gets that number, and whatever is printed then goes there. So none of ours may
// be one of the first three. In programs that are not ours, and in what they share with our
// processes, everything that makes a descriptor is here or in socket.cc (tests/tidy checks it); our
// own processes begin with OpenStandardDescriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace longwire::wire {

// Owns one descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { Reset(); }
  Descriptor(Descriptor&& other) noexcept : value_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  int Release() {
    int value = value_;
    value_ = -1;
    return value;
  }
  void Reset(int value = -1);

 private:
  int value_ = -1;
};

// For main: each standard descriptor that is closed is /dev/null, and was before constructors of
// libraries ran; what the process executes gets it closed again.
void OpenStandardDescriptors();

// All three are /dev/null, also across exec. System calls only: for between fork and exec.
void SilenceStandardDescriptors();

// What was just made, or the same with a higher number. Keeps errno where that is -1.
int AboveStandard(int made);

// Each is close-on-exec; invalid with errno on failure.
Descriptor OpenFile(const char* path, int flags, mode_t mode = 0666);
Descriptor MemoryFile(const char* name, unsigned more_flags = 0);
Descriptor Duplicate(int descriptor);
// As fopen; nullptr on failure. Modes are "r", "w" and "a".
std::FILE* OpenStream(const char* path, const char* mode);
// The file's first `most` bytes; empty if it cannot be read.
std::string ReadFile(const char* path, size_t most);

// A descriptor that lies among those of a program which may close what it does not know, and open
// something else that gets its number.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(Descriptor descriptor);
  ~OwnDescriptor();
  OwnDescriptor(OwnDescriptor&& other) noexcept { *this = std::move(other); }
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;
  // -1 when it is not there any more.
  int get() const;

 private:
  int value_ = -1;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace longwire::wire
