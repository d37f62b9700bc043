#include "server/worker/transfer/staging.h"

#include "server/worker/support/log_line.h"

namespace longwire::worker {

CUresult Staging::Grow() {
  void* memory = nullptr;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  const bool may = host_memory_.Take(HostUse::kStaging, kAreaBytes);
  if (may) result = driver_.cuMemHostAlloc(&memory, kAreaBytes, CU_MEMHOSTALLOC_PORTABLE);
  base::MutexLock lock(mutex_);
  growing_ = false;
  refused_ = result != CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) {
    if (may) host_memory_.Give(HostUse::kStaging, kAreaBytes);
    LogLine("no more pinned memory for staging: error %d", result);
    return result;
  }
  // What is left of the area before is cut into the largest class that fits.
  for (uint32_t i = kClasses; i-- > 0;) {
    while (area_left_ >= kClassBytes[i] && Carve(i)) {
    }
  }
  area_ = static_cast<std::byte*>(memory);
  area_left_ = kAreaBytes;
  allocated_ += kAreaBytes;
  return CUDA_SUCCESS;
}

bool Staging::Carve(uint32_t size_class) {
  if (area_left_ < kClassBytes[size_class]) return false;
  free_[size_class].push_back(area_);
  area_ += kClassBytes[size_class];
  area_left_ -= kClassBytes[size_class];
  return true;
}

bool Staging::Acquire(size_t bytes, bool holds_none, StagingBlock* block, bool* grow) {
  *grow = false;
  base::MutexLock lock(mutex_);
  uint32_t size_class = 0;
  while (size_class < kClasses && kClassBytes[size_class] < bytes) ++size_class;
  if (size_class == kClasses) return false;
  auto& free = free_[size_class];
  if (free.empty()) {
    // Small blocks are cut many at a time, so that they lie together.
    bool carved = Carve(size_class);
    for (int i = 0; i < 15 && size_class == 0 && carved; ++i) Carve(size_class);
  }
  if (free.empty()) {
    if (!growing_ && !refused_ && (holds_none || allocated_ < kSoftLimitBytes)) {
      growing_ = true;
      *grow = true;
    }
    return false;
  }
  *block = {free.back(), kClassBytes[size_class], size_class};
  free.pop_back();
  return true;
}

void Staging::Release(const StagingBlock& block) {
  if (block.data == nullptr) return;
  base::MutexLock lock(mutex_);
  free_[block.size_class].push_back(block.data);
  refused_ = false;
}

}  // namespace longwire::worker
