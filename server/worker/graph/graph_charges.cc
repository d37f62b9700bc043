#include "server/worker/graph/graph_charges.h"

#include "base/memory_sizes.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {
namespace {

// The driver takes memory for graphs in such steps.
constexpr uint64_t kUnit = uint64_t{32} << 20;

}  // namespace

CUresult GraphCharges::Take(const std::map<CUdevice, uint64_t>& bytes, Taken* taken) {
  for (const auto& [handle, sum] : bytes) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].handle != handle) continue;
      auto device = static_cast<int32_t>(i);
      Charge charge;
      CUresult result = charges_.Take(device, base::RoundUp(sum, kUnit), &charge);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        Settle();
        result = charges_.Take(device, base::RoundUp(sum, kUnit), &charge);
      }
      if (result != CUDA_SUCCESS) return result;
      taken->emplace_back(device, std::move(charge));
    }
  }
  return CUDA_SUCCESS;
}

void GraphCharges::Left(Taken taken) {
  if (taken.empty()) return;
  {
    base::MutexLock lock(mutex_);
    for (auto& [device, charge] : taken) left_[device].Absorb(std::move(charge));
  }
  Settle();
}

void GraphCharges::Settle() {
  std::map<int32_t, Charge> left;
  {
    base::MutexLock lock(mutex_);
    left.swap(left_);
  }
  for (auto& [device, charge] : left) {
    CUdevice handle = devices_[static_cast<size_t>(device)].handle;
    driver_.cuDeviceGraphMemTrim(handle);
    cuuint64_t reserved = 0;
    constexpr auto kReserved = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
    CUresult result = driver_.cuDeviceGetGraphMemAttribute(handle, kReserved, &reserved);
    if (result == CUDA_SUCCESS) charge.Beyond(reserved);
    if (charge.bytes() == 0) continue;
    base::MutexLock lock(mutex_);
    left_[device].Absorb(std::move(charge));
  }
}

}  // namespace longwire::worker
