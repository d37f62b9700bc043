#include "server/worker/states/device_shadows.h"

#include <algorithm>

#include "base/memory_sizes.h"
#include "server/worker/memory/mirrors.h"

namespace longwire::worker {
namespace {

// What the driver takes for an allocation of its own.
constexpr uint64_t kGranule = uint64_t{2} << 20;
// With so much unused all are made again.
constexpr uint64_t kSpare = uint64_t{32} << 20;

uint64_t BytesOf(const Mirror& mirror) {
  return base::RoundUp(mirror.address % kBlockBytes + mirror.bytes, kBlockBytes);
}

}  // namespace

bool DeviceShadows::HasOne(const Mirror& mirror) {
  return mirror.device_shadow != nullptr && mirror.device_shadow->address != 0;
}

CUresult DeviceShadows::Provide(std::span<const std::shared_ptr<Mirror>> mirrors, CUstream stream) {
  Sweep();
  uint64_t wanted = 0, there = 0;
  std::vector<std::shared_ptr<Mirror>> without;
  for (const auto& mirror : mirrors) {
    wanted += BytesOf(*mirror);
    if (!HasOne(*mirror)) without.push_back(mirror);
  }
  for (const Slab& slab : slabs_) there += slab.bytes;
  if (without.empty()) return CUDA_SUCCESS;
  if (there <= 2 * wanted + kSpare) return Allocate(without, stream);
  FreeAll();
  return Allocate(mirrors, stream);
}

CUresult DeviceShadows::Allocate(std::span<const std::shared_ptr<Mirror>> mirrors,
                                 CUstream stream) {
  Slab slab;
  for (const auto& mirror : mirrors) slab.bytes += BytesOf(*mirror);
  slab.bytes = base::RoundUp(slab.bytes, kGranule);
  CUresult result = charges_.Take(device_, slab.bytes, &slab.charge);
  if (result == CUDA_SUCCESS) result = driver_.cuMemAlloc_v2(&slab.data, slab.bytes);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuMemsetD8Async(slab.data, 0, slab.bytes, stream);
  }
  if (result != CUDA_SUCCESS) {
    Free(slab);
    return result;
  }
  uint64_t at = slab.data;
  for (const auto& mirror : mirrors) {
    mirror->device_shadow = std::make_shared<DeviceShadow>(DeviceShadow{at});
    slab.shadows.push_back(mirror->device_shadow);
    at += BytesOf(*mirror);
  }
  slabs_.push_back(std::move(slab));
  return CUDA_SUCCESS;
}

bool DeviceShadows::Sweep() {
  std::erase_if(slabs_, [&](Slab& slab) {
    const bool over =
        std::ranges::all_of(slab.shadows, [](const auto& one) { return one.use_count() == 1; });
    if (over) Free(slab);
    return over;
  });
  return !slabs_.empty();
}

void DeviceShadows::FreeAll() {
  for (Slab& slab : slabs_) {
    Free(slab);
    for (const auto& shadow : slab.shadows) shadow->address = 0;
  }
  slabs_.clear();
}

void DeviceShadows::Free(Slab& slab) {
  if (slab.data != 0) driver_.cuMemFree_v2(slab.data);
}

}  // namespace longwire::worker
