#include "softgpu/engine/memory/device_heap.h"

namespace softgpu {

DeviceHeap::~DeviceHeap() {
  if (base_ != 0) memory_.Free(base_);
}

uint64_t DeviceHeap::Allocate(uint64_t bytes) {
  if (bytes > kBytes) return 0;
  bytes = bytes == 0 ? 16 : (bytes + 15) / 16 * 16;
  base::MutexLock lock(mutex_);
  if (base_ == 0) {
    base_ = memory_.Allocate(kBytes, 256);
    if (base_ == 0) return 0;
    free_[base_] = kBytes;
  }
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    auto [address, size] = *it;
    if (size < bytes) continue;
    free_.erase(it);
    if (size > bytes) free_[address + bytes] = size - bytes;
    used_[address] = bytes;
    return address;
  }
  return 0;
}

bool DeviceHeap::Free(uint64_t address) {
  base::MutexLock lock(mutex_);
  auto it = used_.find(address);
  if (it == used_.end()) return false;
  uint64_t bytes = it->second;
  used_.erase(it);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += bytes;
      return true;
    }
  }
  free_[address] = bytes;
  return true;
}

}  // namespace softgpu
