// The devices and their constant properties.
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "nvml-shim/facts.h"
#include "nvml-shim/state.h"
#include "nvml-shim/text.h"

namespace longwire::nvml {
namespace {

// The place of the first device of which `is_it` is true.
template <class Condition>
nvmlReturn_t FindFirst(nvmlDevice_t* device, Condition is_it) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  auto found = std::ranges::find_if(view->devices, is_it);
  if (found == view->devices.end()) return NVML_ERROR_NOT_FOUND;
  *device = HandleOf(static_cast<size_t>(found - view->devices.begin()));
  return NVML_SUCCESS;
}

// What `value` makes of the device.
template <class Value>
nvmlReturn_t Answer(nvmlDevice_t device, unsigned* to, Value value) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *to = value(seen);
  return NVML_SUCCESS;
}

// The same of an attribute that a server may not know.
nvmlReturn_t AnswerAttribute(nvmlDevice_t device, unsigned* to, CUdevice_attribute attribute,
                             unsigned divisor = 1) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  int value = seen.Attribute(attribute, -1);
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (value < 0) return NVML_ERROR_NOT_SUPPORTED;
  *to = static_cast<unsigned>(value) / divisor;
  return NVML_SUCCESS;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(view->devices.size());
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (device == nullptr || index >= view->devices.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = HandleOf(index);
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return FindFirst(device, [&](const wire::ViewedDevice& candidate) {
    return UuidText(candidate.uuid.data()) == uuid;
  });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device) {
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (uuid->version != NvmlVersion<nvmlUUID_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type == NVML_UUID_TYPE_ASCII) {
    std::string text(uuid->value.str, strnlen(uuid->value.str, sizeof(uuid->value.str)));
    return nvmlDeviceGetHandleByUUID(text.c_str(), device);
  }
  if (uuid->type != NVML_UUID_TYPE_BINARY) return NVML_ERROR_INVALID_ARGUMENT;
  return FindFirst(device, [&](const wire::ViewedDevice& candidate) {
    return std::ranges::equal(candidate.uuid, uuid->value.bytes);
  });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  return Answer(device, index, [](const Seen& seen) { return seen.index; });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  return result == NVML_SUCCESS ? CopyText(seen.device->name, name, length) : result;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  return CopyText(UuidText(seen.device->uuid.data()), uuid, length);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned* brand) {
  return Answer(device, brand, [](const Seen& seen) { return BrandOf(seen.device->name); });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major,
                                                            int* minor) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = seen.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  *minor = seen.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned* architecture) {
  return Answer(device, architecture, ArchitectureOf);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned* cores) {
  return Answer(device, cores, CoresOf);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned* bits) {
  return AnswerAttribute(device, bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned* multi) {
  return AnswerAttribute(device, multi, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
}

// CUDA and NVML number the modes alike.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned* mode) {
  return AnswerAttribute(device, mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
}

// In MHz; CUDA says kHz, and of two kinds only.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type,
                                                   unsigned* clock) {
  constexpr unsigned kPerMegahertz = 1000;
  if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  if (type == NVML_CLOCK_VIDEO) {
    Seen seen;
    nvmlReturn_t result = Find(device, &seen);
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
  }
  auto attribute = type == NVML_CLOCK_MEM ? CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
                                          : CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
  return AnswerAttribute(device, clock, attribute, kPerMegahertz);
}

// Parts of devices (MIG) are not served.
NVML_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* is_part) {
  return Answer(device, is_part, [](const Seen&) { return 0u; });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  return Answer(device, count, [](const Seen&) { return 0u; });
}

}  // namespace longwire::nvml
