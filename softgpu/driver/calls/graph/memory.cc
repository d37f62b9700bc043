// Memory that graphs allocate: its figures.
#include "softgpu/driver/graph/graph_memory.h"

using namespace softgpu;

// Memory goes back when its graph does, so what is reserved is what is used.
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  LONGWIRE_TRY(Enter());
  return Driver::Get().FindDevice(device) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  LONGWIRE_TRY(Enter());
  if (Driver::Get().FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphMemoryFigures& known = GraphMemoryFiguresOf(device);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = known.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = known.high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// A high-water mark can only be taken back to where things stand.
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  LONGWIRE_TRY(Enter());
  if (Driver::Get().FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
              attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!high || value == nullptr || *static_cast<cuuint64_t*>(value) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  GraphMemoryFigures& known = GraphMemoryFiguresOf(device);
  known.high = known.used.load();
  return CUDA_SUCCESS;
}
