// Creates descriptors that are never 0, 1 or 2. A process may be started with a standard descriptor
// closed; the next file that it opens gets that number, and printed text would go into that file.
// Code that runs inside users' programs creates descriptors only here and in socket.cc (tests/tidy
// checks it). Our own processes call OpenStandardDescriptors first.
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

// For main: opens /dev/null for each standard descriptor that is closed. That is done before the
// constructors of libraries run, and close-on-exec.
void OpenStandardDescriptors();

// Makes all three /dev/null, also across exec. Makes only system calls, so that it may be called
// between fork and exec.
void SilenceStandardDescriptors();

// Returns the descriptor `made`, or a duplicate above 2 in its place. Keeps errno if it is -1.
int AboveStandard(int made);

// Each is close-on-exec; invalid with errno on failure.
Descriptor OpenFile(const char* path, int flags, mode_t mode = 0666);
Descriptor MemoryFile(const char* name, unsigned more_flags = 0);
Descriptor Duplicate(int descriptor);
// As fopen; nullptr on failure. Modes are "r", "w" and "a".
std::FILE* OpenStream(const char* path, const char* mode);
// The file's first `most` bytes; empty if it cannot be read.
std::string ReadFile(const char* path, size_t most);

// A descriptor inside a user's program. The program may close it, and open another file that gets
// its number; both are detected.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(Descriptor descriptor);
  ~OwnDescriptor();
  OwnDescriptor(OwnDescriptor&& other) noexcept { *this = std::move(other); }
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;
  // -1 if the program has closed it.
  int get() const;

 private:
  int value_ = -1;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace longwire::wire
