// What the just-in-time compiler and the linker tell a program by its options: the log of errors,
// the log of information, which is always empty, and how long they took.
#pragma once

#include <chrono>
#include <string>

#include "softgpu/driver/state/driver.h"

namespace softgpu {

class Watch {
 public:
  float Milliseconds() const {
    return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class JitLog {
 public:
  JitLog() = default;
  // Option values are a union: buffers come as pointers, sizes in the pointer itself.
  JitLog(unsigned count, const CUjit_option* options, void** values);
  // Adds the text, and writes over the values how long each log is, and the milliseconds of all
  // calls so far.
  void Write(const std::string& message, float milliseconds);

 private:
  struct Buffer {
    char* text = nullptr;
    size_t room = 0;
    size_t used = 0;
    void** size = nullptr;
    void Add(const std::string& message);
  };
  Buffer error_, info_;
  void** time_ = nullptr;
  float milliseconds_ = 0;
};

}  // namespace softgpu
