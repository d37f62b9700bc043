// Physical memory of the software devices: sealed memfd chunks that are named after their device,
// one total per device of this process. Released chunks are kept by size and handed out again with
// their old bytes, never zeroed, so that a test of scrubbing can fail.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/memory_sizes.h"
#include "softgpu/engine/mutex.h"

namespace softgpu {

constexpr size_t kChunkGranularity = longwire::base::kDeviceGranularityBytes;

struct Chunk {
  int fd = -1;
  size_t bytes = 0;
  int device = 0;
  bool imported = false;
  ~Chunk();  // gives the memory back, or closes the descriptor if it was imported
};

class PhysicalMemory {
 public:
  static PhysicalMemory& Get();

  void SetTotals(const std::vector<size_t>& bytes_per_device);
  // Null when the device's total does not suffice. `bytes` is a multiple of kChunkGranularity.
  std::shared_ptr<Chunk> Create(int device, size_t bytes);
  // Checks that `fd` is a chunk (name, seals and size) of one of this process's devices and
  // duplicates it; null if it is not.
  std::shared_ptr<Chunk> Import(int fd);
  size_t FreeBytes(int device);

 private:
  friend struct Chunk;
  struct Pool {
    size_t total = 0;  // bytes
    size_t used = 0;
    size_t idle = 0;                         // bytes in idle_chunks
    std::multimap<size_t, int> idle_chunks;  // size -> descriptor
  };
  void GiveBack(const Chunk& chunk);

  base::Mutex mutex_{base::ranks::kSoftgpuPhysicalMemory};
  std::vector<Pool> pools_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace softgpu
