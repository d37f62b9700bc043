// What malloc and free in a kernel use: one heap per module, made at the first malloc.
#pragma once

#include <cstdint>
#include <map>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/mutex.h"

namespace softgpu {

class DeviceHeap {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // CUDA's default heap size

  explicit DeviceHeap(ModuleMemory& memory) : memory_(memory) {}
  ~DeviceHeap();

  uint64_t Allocate(uint64_t bytes);  // 16-byte aligned; 0 when the heap is full
  bool Free(uint64_t address);        // false if it was not allocated here

 private:
  ModuleMemory& memory_;
  base::Mutex mutex_{base::ranks::kSoftgpuDeviceHeap};
  uint64_t base_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, uint64_t> used_ LONGWIRE_GUARDED_BY(mutex_);  // address to bytes
  std::map<uint64_t, uint64_t> free_ LONGWIRE_GUARDED_BY(mutex_);  // address to bytes
};

}  // namespace softgpu
