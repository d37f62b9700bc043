// Initialisation, devices and their attributes.
#include <strings.h>

#include <algorithm>
#include <cstring>

#include "softgpu/driver/device/initialize.h"
#include "softgpu/driver/driver_version.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/module/texture.h"
#include "softgpu/engine/engine.h"

namespace softgpu {
namespace {

struct Attribute {
  CUdevice_attribute attribute;
  int value;
};

// Attributes with the same value on every software device. What is not listed is 0: the feature
// does not exist. Grid and block limits are those of compute capability 9.0.
constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, DeviceShape::kSharedBytesPerBlock},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},  // kHz; nominal
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, DeviceShape::kMultiprocessors},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},  // kHz; nominal
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, DeviceShape::kMaxThreadsPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, DeviceShape::kComputeMajor},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, DeviceShape::kComputeMinor},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
     DeviceShape::kSharedBytesPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, DeviceShape::kSharedBytesPerBlockOptin},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, DeviceShape::kMaxBlocksPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
};

CUresult Find(CUdevice ordinal, Device** device) {
  LONGWIRE_TRY(Enter());
  *device = Driver::Get().FindDevice(ordinal);
  return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Initialize();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = DriverVersion();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Device* found;
  LONGWIRE_TRY(Find(ordinal, &found));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  LONGWIRE_TRY(Enter());
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Driver::Get().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  strncpy(name, device->name.c_str(), static_cast<size_t>(len) - 1);
  name[len - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (value == nullptr || attribute < 1 || attribute > LastDeviceAttribute()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) *value = device->ordinal + 1;
  if (attribute == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID) *value = device->ordinal;
  if (attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) *value = 0;
  for (const Attribute& known : kAttributes) {
    if (known.attribute == attribute) *value = known.value;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  LONGWIRE_TRY(cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev));
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice dev) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::pair<CUdevice_attribute, int*> fields[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &properties->maxThreadsPerBlock},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &properties->maxThreadsDim[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &properties->maxThreadsDim[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &properties->maxThreadsDim[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &properties->maxGridSize[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &properties->maxGridSize[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &properties->maxGridSize[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &properties->sharedMemPerBlock},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &properties->totalConstantMemory},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &properties->SIMDWidth},
      {CU_DEVICE_ATTRIBUTE_MAX_PITCH, &properties->memPitch},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &properties->regsPerBlock},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &properties->clockRate},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &properties->textureAlign}};
  for (auto [attribute, value] : fields) LONGWIRE_TRY(cuDeviceGetAttribute(value, attribute, dev));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int len, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (id == nullptr || len <= static_cast<int>(strlen(device->pci_bus_id))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  snprintf(id, static_cast<size_t>(len), "%s", device->pci_bus_id);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* id) {
  LONGWIRE_TRY(Enter());
  if (dev == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (auto& device : Driver::Get().devices) {
    // With or without the domain in front.
    if (strcasecmp(id, device->pci_bus_id) == 0 || strcasecmp(id, device->pci_bus_id + 5) == 0) {
      *dev = device->ordinal;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType type, CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (value == nullptr || type < 0 || type >= CU_EXEC_AFFINITY_TYPE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = 0;
  return CUDA_SUCCESS;
}

// Every write to the arena is seen by all who read it later.
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  bool known = target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
               (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format format, unsigned channels,
                                            CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (width == nullptr || longwire::base::TexelBytes(format, channels) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *width = kMaxLinearTexels;
  return CUDA_SUCCESS;
}

// As CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED says: none.
CUresult cuDeviceGetHostAtomicCapabilities(unsigned* capabilities,
                                           const CUatomicOperation* operations, unsigned count,
                                           CUdevice dev) {
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  if (capabilities == nullptr || operations == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (operations[i] < 0 || operations[i] >= CU_ATOMIC_OPERATION_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  std::fill(capabilities, capabilities + count, 0);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char* luid, unsigned int* /*mask*/, CUdevice dev) {
  if (luid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device;
  LONGWIRE_TRY(Find(dev, &device));
  return CUDA_ERROR_NOT_SUPPORTED;  // Windows' number
}

CUresult cuGetExportTable(const void** table, const CUuuid* /*id*/) {
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

EXPORTED CUresult cuProfilerStart() { return Enter(); }
EXPORTED CUresult cuProfilerStop() { return Enter(); }
