// Device resources that the driver has returned (CUdevResource). Half of each is private data,
// which the driver trusts. So only resources that it has returned are passed back to it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <set>
#include <span>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

class GivenResources {
 public:
  static constexpr size_t kMaxKept = size_t{1} << 16;  // then the oldest are dropped

  void Add(std::span<const CUdevResource> given);
  bool any() const {
    base::MutexLock lock(mutex_);
    return !given_.empty();
  }
  // Decodes resources. CUDA_ERROR_INVALID_VALUE for one that the driver has not returned, or that
  // was changed since; _INVALID_RESOURCE_TYPE for other kinds.
  CUresult Read(std::span<const std::byte> bytes, std::vector<CUdevResource>* resources) const;

 private:
  using Bytes = std::array<std::byte, sizeof(CUdevResource)>;

  mutable base::Mutex mutex_{base::ranks::kGivenResources};
  std::set<Bytes> given_ LONGWIRE_GUARDED_BY(mutex_);
  std::deque<Bytes> in_order_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
