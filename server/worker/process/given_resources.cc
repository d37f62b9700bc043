#include "server/worker/process/given_resources.h"

#include <cstring>

#include "wire/guards.h"

namespace longwire::worker {

void GivenResources::Add(std::span<const CUdevResource> given) {
  base::MutexLock lock(mutex_);
  for (const CUdevResource& resource : given) {
    Bytes bytes;
    std::memcpy(bytes.data(), &resource, bytes.size());
    if (!given_.insert(bytes).second) continue;
    in_order_.push_back(bytes);
    if (in_order_.size() <= kMaxKept) continue;
    given_.erase(in_order_.front());
    in_order_.pop_front();
  }
}

CUresult GivenResources::Read(std::span<const std::byte> bytes,
                              std::vector<CUdevResource>* resources) const {
  static const bool checks = !wire::GuardIsOff("resources");
  constexpr size_t kEach = sizeof(CUdevResource);
  if (bytes.empty() || bytes.size() % kEach != 0) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(mutex_);
  for (; !bytes.empty(); bytes = bytes.subspan(kEach)) {
    Bytes one;
    std::memcpy(one.data(), bytes.data(), kEach);
    CUdevResource& resource = resources->emplace_back();
    std::memcpy(&resource, one.data(), kEach);
    if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (checks && !given_.contains(one)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
