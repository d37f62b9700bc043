// Pinned memory of a program on the same host: parts of a segment that program and worker share.
// The driver copies directly from and to it.
//
// The program may read and write the segment at any time, so its contents are never trusted. Which
// parts are in use, and that a copy stays within one part, is checked here.
//
// Where the driver can, kernels reach pinned parts at the addresses that they have in this process,
// and the program maps them at the same ones: then all see each other's writes at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/host_memory.h"
#include "server/worker/transfer/copies.h"
#include "wire/open.h"
#include "wire/rings/segment.h"
#include "wire/socket.h"

namespace longwire::worker {

class HostSegment {
 public:
  // Parts begin and end at multiples of this, so the segment's size bounds their number.
  static constexpr uint64_t kPart = uint64_t{2} << 20;

  HostSegment(const DriverTable& driver, HostMemory& host_memory)
      : driver_(driver), host_memory_(host_memory) {}
  HostSegment(const HostSegment&) = delete;
  HostSegment& operator=(const HostSegment&) = delete;

  // Before the session starts. Without it, or if it fails, there is no segment.
  void Make(uint64_t bytes);
  // Also before it starts: moves the segment to addresses that are free here and in the program,
  // outside the windows `taken`, so that kernels reach it. `free`: those of the program. Where
  // there are none it stays where it is, and kernels do not reach it.
  void Place(std::span<const wire::Window> free, std::span<const wire::Window> taken);
  uint64_t base() const { return base_; }  // 0: kernels do not reach it
  uint64_t bytes() const { return mapping_ == nullptr ? 0 : mapping_->bytes(); }
  int descriptor() const { return file_.get(); }

  // Has the driver pin a part, which may take long. A context must be current, as for Remove.
  // CUDA_ERROR_INVALID_VALUE if it lies outside or overlaps another part, CUDA_ERROR_OUT_OF_MEMORY
  // if the limits of the host's memory do not allow it, CUDA_ERROR_NOT_SUPPORTED if kernels should
  // reach it and would have to at another address.
  CUresult Add(uint64_t offset, uint64_t bytes);
  // Unpins the part and frees its pages. Copies that use it must have finished.
  CUresult Remove(uint64_t offset);

  // Resolves the host side of a copy, whose address is an offset in the segment. False if it is not
  // within one part.
  bool Find(const calls::Place& place, uint64_t bytes, CopyPlace* made);
  // The same for contiguous bytes; nullptr if they are not within one part.
  std::byte* FindSlot(uint64_t offset, uint64_t bytes);
  uint64_t OffsetOf(const std::byte* data) const {
    return static_cast<uint64_t>(data - mapping_->data());
  }

 private:
  CUresult Pin(uint64_t offset, uint64_t bytes);

  const DriverTable& driver_;
  HostMemory& host_memory_;
  wire::Descriptor file_;
  std::unique_ptr<wire::SegmentMapping> mapping_;
  uint64_t base_ = 0;
  base::Mutex mutex_{base::ranks::kHostSegment};
  std::map<uint64_t, uint64_t> parts_ LONGWIRE_GUARDED_BY(mutex_);  // offset, bytes
};

}  // namespace longwire::worker
