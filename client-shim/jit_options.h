// Options of the just-in-time compiler and of the linker: what travels, and the logs that come
// back.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace longwire::shim {

// As a program gives them: values are numbers, or pointers, in the pointers themselves.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* option = nullptr;
  void** value = nullptr;

  // False when there should be options and are none.
  bool valid() const { return count == 0 || (option != nullptr && value != nullptr); }
};

// The options that mean something to the server. CUDA_ERROR_NOT_SUPPORTED for those that point to
// tables of names.
CUresult TravellingOptions(const JitOptions& options, std::vector<uint32_t>* option,
                           std::vector<uint64_t>* value);

// The program's buffer for one of the two logs, as it was given.
class JitLog {
 public:
  enum class Kind { kInfo, kError };
  JitLog() = default;
  JitLog(const JitOptions& options, Kind kind);

  // Writes the log into the buffer and its length over the size, as the driver does.
  void Deliver(std::string_view log) const;

 private:
  char* buffer_ = nullptr;
  void** size_ = nullptr;
  size_t room_ = 0;
};

}  // namespace longwire::shim
