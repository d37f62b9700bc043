#include "client-shim/mirror/memory_hints.h"

#include <algorithm>
#include <iterator>

namespace longwire::shim {
namespace {

bool Same(const CUmemLocation& a, const CUmemLocation& b) {
  return a.type == b.type && (a.type == CU_MEM_LOCATION_TYPE_HOST || a.id == b.id);
}

// The form of the older attributes.
int DeviceOf(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

void KeepCommon(CUmemLocation& common, const CUmemLocation& other) {
  if (!Same(common, other)) common = {};
}

}  // namespace

Hints MemoryHints::Common(uint64_t address, uint64_t bytes) const {
  auto at = from_.upper_bound(address);
  Hints common = at == from_.begin() ? Hints{} : std::prev(at)->second;
  for (; at != from_.end() && at->first < address + bytes; ++at) {
    const Hints& other = at->second;
    common.read_mostly = common.read_mostly && other.read_mostly;
    KeepCommon(common.preferred, other.preferred);
    KeepCommon(common.prefetched, other.prefetched);
    std::erase_if(common.accessed_by,
                  [&](int device) { return other.accessed_by.count(device) == 0; });
  }
  return common;
}

CUresult MemoryHints::Query(uint64_t address, uint64_t bytes, CUmem_range_attribute attribute,
                            void* data, size_t data_bytes) const {
  auto* value = static_cast<int*>(data);
  bool list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  size_t count = data_bytes / sizeof(int);
  if (data_bytes % sizeof(int) != 0 || count == 0 || (!list && count != 1)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Hints common = Common(address, bytes);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *value = common.read_mostly ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      *value = DeviceOf(common.preferred);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      std::fill_n(value, count, static_cast<int>(CU_DEVICE_INVALID));
      for (int device : common.accessed_by) {
        if (count-- == 0) break;
        *value++ = device;
      }
      return CUDA_SUCCESS;
    }
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      *value = DeviceOf(common.prefetched);
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      *value = common.preferred.type;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      *value = common.preferred.id;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      *value = common.prefetched.type;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      *value = common.prefetched.id;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace longwire::shim
