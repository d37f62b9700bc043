// Devices: how many there are, what they are, their memory pools.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/try.h"
#include "client-shim/calls/memory/memory_narrow.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/async_pool.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (FindDevice(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = DeviceCount();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  const Device* device = FindDevice(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  strncpy(name, device->description->name.c_str(), static_cast<size_t>(len));
  name[len - 1] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char* luid, unsigned int* /*deviceNodeMask*/, CUdevice dev) {
  if (luid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (FindDevice(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_ERROR_NOT_SUPPORTED;  // the driver's answer on Linux: these numbers are Windows'
}

// No link leads from a device to this host's memory: as CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_
// SUPPORTED says, nothing is atomic for both.
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities,
                                           const CUatomicOperation* operations, unsigned int count,
                                           CUdevice dev) {
  if (FindDevice(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (capabilities == nullptr || operations == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < count; ++i) {
    bool known = operations[i] >= 0 && operations[i] < CU_ATOMIC_OPERATION_MAX;
    if (!known) return CUDA_ERROR_INVALID_VALUE;
  }
  std::fill(capabilities, capabilities + count, 0);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return DeviceUuid(dev, reinterpret_cast<uint8_t*>(uuid->bytes)) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return hand::cuDeviceGetUuid(uuid, dev); }

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  const Device* device = FindDevice(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = device->description->total_memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return DeviceAttribute(dev, attrib, pi);
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  LONGWIRE_TRY(DeviceAttribute(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major));
  return DeviceAttribute(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  const Device* device = FindDevice(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto value = [&](CUdevice_attribute attribute) { return AttributeOr(*device, attribute, 0); };
  prop->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  prop->maxThreadsDim[0] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  prop->maxThreadsDim[1] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  prop->maxThreadsDim[2] = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  prop->maxGridSize[0] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  prop->maxGridSize[1] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  prop->maxGridSize[2] = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  prop->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  prop->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  unsigned domain = 0, bus = 0, slot = 0;
  bool full = sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) == 3;
  if (!full) {
    domain = 0;
    if (sscanf(pciBusId, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int ordinal = 0; ordinal < DeviceCount(); ++ordinal) {
    const Device& device = *FindDevice(ordinal);
    auto value = [&](CUdevice_attribute attribute) {
      return static_cast<unsigned>(AttributeOr(device, attribute, -1));
    };
    if (value(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) == domain &&
        value(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) == bus &&
        value(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) == slot) {
      *dev = ordinal;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  const Device* device = FindDevice(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::string text = PciBusId(*device);
  if (pciBusId == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  strncpy(pciBusId, text.c_str(), static_cast<size_t>(len));
  pciBusId[len - 1] = 0;
  return text.size() < static_cast<size_t>(len) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  size_t wide = 0;
  CUresult result = hand::cuDeviceTotalMem_v2(&wide, dev);
  return GiveNarrow(result, wide, bytes, wide, nullptr);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return DevicePool(dev, true, pool_out);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return DevicePool(dev, false, pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) { return SetDevicePool(dev, pool); }

}  // namespace longwire::shim::hand
