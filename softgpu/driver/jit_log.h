// The error log that a program asks for with options of the just-in-time compiler. The information
// log is always empty.
#pragma once

#include <string>

#include "softgpu/driver/driver.h"

namespace softgpu {

class JitLog {
 public:
  JitLog() = default;
  // Option values are a union: buffers come as pointers, sizes in the pointer itself.
  JitLog(unsigned count, const CUjit_option* options, void** values);
  // Writes the text and its length with the zero behind it, over the sizes.
  void Write(const std::string& message) const;

 private:
  char* buffer_ = nullptr;
  size_t room_ = 0;
  void** error_size_ = nullptr;
  void** info_size_ = nullptr;
};

}  // namespace softgpu
