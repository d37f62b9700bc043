// Parts of a device that the driver gave out (CUdevResource): half of each is the driver's own
// business, and what it finds there it believes. So only what it wrote goes back to it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "server/worker/support/driver.h"

namespace longwire::worker {

class GivenResources {
 public:
  static constexpr size_t kMaxKept = size_t{1} << 16;  // the oldest are forgotten

  void Add(std::span<const CUdevResource> given);
  bool any() const {
    std::lock_guard lock(mutex_);
    return !given_.empty();
  }
  // The resources in these bytes. CUDA_ERROR_INVALID_VALUE for one that was not given out, or that
  // was changed since, _INVALID_RESOURCE_TYPE for other kinds.
  CUresult Read(std::span<const std::byte> bytes, std::vector<CUdevResource>* resources) const;

 private:
  using Bytes = std::array<std::byte, sizeof(CUdevResource)>;

  mutable std::mutex mutex_;
  std::set<Bytes> given_;
  std::deque<Bytes> in_order_;
};

}  // namespace longwire::worker
