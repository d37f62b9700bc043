// Memory in pages of its own, which have nothing of the program's.
#pragma once

#include <cstddef>

namespace longwire::shim {

class PrivateMemory {
 public:
  PrivateMemory() = default;
  ~PrivateMemory() { Free(); }
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;

  // Room for the bytes, all of it there; what was in it before is lost if it grows. False: the
  // system has none.
  [[nodiscard]] bool Reserve(size_t bytes);
  std::byte* data() { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void Free();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace longwire::shim
