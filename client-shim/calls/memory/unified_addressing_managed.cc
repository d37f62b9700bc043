// What programs say about the use of managed memory.
#include "base/try.h"
#include "client-shim/context/properties.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/stream.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUmemLocation Location(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

CUresult CheckLocation(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return FindDevice(location.id) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void Apply(Hints& hints, CUmem_advise advice, const CUmemLocation& location) {
  int device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      hints.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
      break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      hints.preferred = location;
      break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      hints.preferred = {};
      break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      hints.accessed_by.insert(device);
      break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      hints.accessed_by.erase(device);
      break;
  }
}

// No node of a graph moves managed memory or says whose it is.
CUresult CheckStream(CUstream handle) {
  Stream* stream = nullptr;
  CUresult result = ResolveStream(handle, &stream);
  return result == CUDA_SUCCESS ? RefuseWhileCapturing(stream) : result;
}

CUresult CheckBatch(const CUdeviceptr* pointers, const size_t* sizes, size_t count,
                    unsigned long long flags, CUstream stream) {
  if (pointers == nullptr || sizes == nullptr || count == 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CheckStream(stream);
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    result = WithHints(pointers[i], sizes[i], [](MemoryHints&) {});
  }
  return result;
}

CUresult CheckPlaces(const CUmemLocation* places, const size_t* firsts, size_t count,
                     size_t pointers) {
  if (places == nullptr || firsts == nullptr || count == 0 || count > pointers) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    bool ordered = i == 0 ? firsts[i] == 0 : firsts[i] > firsts[i - 1];
    if (!ordered || firsts[i] >= pointers) return CUDA_ERROR_INVALID_VALUE;
    LONGWIRE_TRY(CheckLocation(places[i]));
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool needs_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                     advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                     advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  LONGWIRE_TRY(needs_place ? CheckLocation(location) : CUDA_SUCCESS);
  return WithHints(devPtr, count, [&](MemoryHints& hints) {
    hints.Update(devPtr, count, [&](Hints& of_pages) { Apply(of_pages, advice, location); });
  });
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return hand::cuMemAdvise_v2(devPtr, count, advice, Location(device));
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult answer = CUDA_SUCCESS;
  CUresult result = WithHints(devPtr, count, [&](MemoryHints& hints) {
    answer = hints.Query(devPtr, count, attribute, data, dataSize);
  });
  return result == CUDA_SUCCESS ? answer : result;
}

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
  if (data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < numAttributes; ++i) {
    LONGWIRE_TRY(hand::cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count));
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckStream(hStream));
  LONGWIRE_TRY(CheckLocation(location));
  return WithHints(devPtr, count, [&](MemoryHints& hints) {
    hints.Update(devPtr, count, [&](Hints& of_pages) { of_pages.prefetched = location; });
  });
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
  return hand::cuMemPrefetchAsync_v2(devPtr, count, Location(dstDevice), 0, hStream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                 CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                 size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
  CUresult result = CheckBatch(dptrs, sizes, count, flags, hStream);
  if (result == CUDA_SUCCESS) {
    result = CheckPlaces(prefetchLocs, prefetchLocIdxs, numPrefetchLocs, count);
  }
  for (size_t i = 0, place = 0; i < count && result == CUDA_SUCCESS; ++i) {
    if (place + 1 < numPrefetchLocs && prefetchLocIdxs[place + 1] <= i) ++place;
    result = hand::cuMemPrefetchAsync_v2(dptrs[i], sizes[i], prefetchLocs[place], 0, hStream);
  }
  return result;
}

// What is discarded may read as anything: also as what it was.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream hStream) {
  return CheckBatch(dptrs, sizes, count, flags, hStream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                           CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                           size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream) {
  return hand::cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                       numPrefetchLocs, flags, hStream);
}

}  // namespace longwire::shim::hand
