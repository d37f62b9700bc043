// What malloc and free in a kernel use: one heap per module, made at the first malloc.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "softgpu/engine/engine.h"

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
  std::mutex mutex_;
  uint64_t base_ = 0;                  // guarded by mutex_
  std::map<uint64_t, uint64_t> used_;  // address to bytes; guarded by mutex_
  std::map<uint64_t, uint64_t> free_;  // address to bytes; guarded by mutex_
};

}  // namespace softgpu
