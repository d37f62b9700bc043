// Pinned host memory through which copies pass: blocks of a few sizes out of large pinned areas.
// Bounded; a copy that finds nothing free waits in its stream until a block comes back. A stream
// that holds no block yet gets one beyond the bound, so that streams cannot starve each other, as
// far as the limits of the host's memory go (support/host_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/host_memory.h"

namespace longwire::worker {

struct StagingBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;  // size of the block, at least the requested size
  uint32_t size_class = 0;
  // A slot of the shared segment, which holds the copy's bytes already.
  static constexpr uint32_t kSlot = UINT32_MAX;  // as size_class
};

class Staging {
 public:
  static constexpr size_t kMaxBlockBytes = size_t{1} << 20;
  static constexpr size_t kAreaBytes = size_t{8} << 20;
  static constexpr size_t kSoftLimitBytes = size_t{128} << 20;

  Staging(const DriverTable& driver, HostMemory& host_memory)
      : driver_(driver), host_memory_(host_memory) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Allocates another pinned area. The driver may wait for running work, so once work runs the log
  // thread must not call this. A context must be current.
  CUresult Grow();

  // Takes a free block of at least `bytes` (≤ kMaxBlockBytes). False if there is none. If *grow is
  // set, the caller then has another thread call Grow.
  bool Acquire(size_t bytes, bool holds_none, StagingBlock* block, bool* grow);
  void Release(const StagingBlock& block);

 private:
  static constexpr size_t kClassBytes[] = {size_t{4} << 10, size_t{64} << 10, size_t{256} << 10,
                                           size_t{512} << 10, kMaxBlockBytes};
  static constexpr uint32_t kClasses = 5;

  bool Carve(uint32_t size_class) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  HostMemory& host_memory_;
  base::Mutex mutex_{base::ranks::kStaging};
  std::vector<std::byte*> free_[kClasses] LONGWIRE_GUARDED_BY(mutex_);
  // The rest of the newest area, not yet cut into blocks.
  std::byte* area_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  size_t area_left_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  size_t allocated_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool growing_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool refused_ LONGWIRE_GUARDED_BY(mutex_) = false;  // the last growth, and no block came back
};

}  // namespace longwire::worker
