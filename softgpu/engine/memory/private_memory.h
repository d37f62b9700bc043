// Memory that only kernels see: shared and local memory, parameters and the grid workspace. It is
// one reserved range beside the arena, so that "may a kernel touch this?" stays a range check and
// a wild pointer can never reach the rest of the process.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/engine/mutex.h"

namespace softgpu {

class PrivateMemory {
 public:
  static PrivateMemory& Get();

  bool Contains(uint64_t address, uint64_t bytes) const {
    uint64_t offset = address - base_;
    return offset < bytes_ && bytes <= bytes_ - offset;
  }
  uint64_t Allocate(uint64_t bytes);  // 256-byte aligned, not zeroed; 0 when there is none
  void Free(uint64_t address, uint64_t bytes);

 private:
  PrivateMemory();
  static int ClassOf(uint64_t bytes);

  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  base::Mutex mutex_{base::ranks::kSoftgpuPrivateMemory};
  uint64_t used_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::vector<std::vector<uint64_t>> free_ LONGWIRE_GUARDED_BY(mutex_);  // by power of two
};

}  // namespace softgpu
