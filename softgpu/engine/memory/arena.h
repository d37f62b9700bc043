// The software devices' address space: one reserved range of this process in which everything that
// a kernel may touch lives, with a bit per device and 2 MiB granule saying whether that device may
// access it; and host memory elsewhere that the program has registered, which all devices may
// access. Generic addresses of kernels are host addresses; every access is checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "softgpu/engine/memory/host_ranges.h"

namespace softgpu {

// A set of devices: bit N stands for device N.
using DeviceSet = uint64_t;
constexpr DeviceSet kAllDevices = ~DeviceSet{0};
constexpr DeviceSet OnlyDevice(int device) { return DeviceSet{1} << device; }

class Arena {
 public:
  static constexpr uint64_t kGranule = uint64_t{2} << 20;  // bytes

  // The process's arena, reserved on first use (PROT_NONE, no memory used). Base and size come from
  // LONGWIRE_SOFTGPU_ARENA_BASE and LONGWIRE_SOFTGPU_ARENA_BYTES; the defaults are 0x200000000000
  // and 1 TiB. Sanitizers occupy address windows, so both are settings.
  static Arena& Get();

  uint64_t base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

  // Gives whole granules of [address, address + bytes) to exactly these devices; to none: they are
  // not mapped. Address and bytes must be multiples of kGranule inside the arena.
  void Mark(uint64_t address, uint64_t bytes, DeviceSet devices);

  // Registered host memory outside the arena. Changed by one thread at a time.
  HostRanges& hosts() { return hosts_; }

  // True if one of `devices` may access every byte of [address, address + bytes): kernels ask for
  // their own device, copies for any.
  bool Allows(uint64_t address, uint64_t bytes, DeviceSet devices = kAllDevices) const {
    uint64_t offset = address - base_;
    if (offset >= bytes_) return hosts_.Hold(address, bytes);
    if (bytes > bytes_ - offset) return false;
    for (uint64_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
      if ((access_[g].load(std::memory_order_relaxed) & devices) == 0) return false;
    }
    return true;
  }

 private:
  Arena();
  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  std::atomic<DeviceSet>* access_ = nullptr;  // by granule; zero = not mapped
  HostRanges hosts_;
};

}  // namespace softgpu
