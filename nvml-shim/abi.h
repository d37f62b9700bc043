// The part of NVML's binary interface (version 13.0) that this library answers, as programs expect
// it: numbers, layouts, signatures. Declared here, so that building needs no header of the driver.
#pragma once

#include <cstddef>

enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};

// Opaque to callers.
using nvmlDevice_t = const char*;

constexpr unsigned NVML_INIT_FLAG_NO_GPUS = 1;
constexpr unsigned NVML_INIT_FLAG_NO_ATTACH = 2;
constexpr unsigned NVML_DEVICE_ARCH_UNKNOWN = 0xffffffff;
constexpr unsigned NVML_NO_INSTANCE = 0xffffffff;  // a process that is in no part of a device

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO, NVML_CLOCK_COUNT };
enum { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5, NVML_P2P_STATUS_UNKNOWN = 6 };
enum {
  NVML_P2P_CAPS_INDEX_READ,
  NVML_P2P_CAPS_INDEX_WRITE,
  NVML_P2P_CAPS_INDEX_NVLINK,
  NVML_P2P_CAPS_INDEX_ATOMICS,
  NVML_P2P_CAPS_INDEX_PCI,
  NVML_P2P_CAPS_INDEX_UNKNOWN
};
enum { NVML_NVLINK_CAP_P2P_SUPPORTED = 0, NVML_NVLINK_CAP_COUNT = 6 };
enum { NVML_NVLINK_DEVICE_TYPE_SWITCH = 2 };
enum { NVML_FI_DEV_NVLINK_GET_STATE = 165, NVML_FI_DEV_NVLINK_GET_VERSION = 166 };
constexpr unsigned NVML_VALUE_TYPE_UNSIGNED_INT = 1;
enum { NVML_UUID_TYPE_ASCII = 1, NVML_UUID_TYPE_BINARY = 2 };
enum { NVML_PROCESS_MODE_COMPUTE, NVML_PROCESS_MODE_GRAPHICS, NVML_PROCESS_MODE_MPS };

// Structures that begin with `version` carry their own size and number there.
template <class T>
constexpr unsigned NvmlVersion(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | number << 24;
}

// As of the first version, which ends before pciSubSystemId had been added: see pci.cc.
struct nvmlPciInfo_t {
  char busIdLegacy[16];  // "0000:3b:00.0"
  unsigned domain, bus, device;
  unsigned pciDeviceId;     // device's and vendor's number, 16 bits each
  unsigned pciSubSystemId;  // from the second version on
  char busId[32];           // "00000000:3B:00.0", from the third on
};

struct nvmlPciInfoExt_t {
  unsigned version;
  unsigned domain, bus, device;
  unsigned pciDeviceId, pciSubSystemId;
  unsigned baseClass, subClass;
  char busId[32];
};

struct nvmlMemory_t {
  unsigned long long total, free, used;  // bytes
};

struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;  // bytes
};

struct nvmlUtilization_t {
  unsigned gpu, memory;  // percent
};

struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;  // bytes
};

struct nvmlProcessInfo_t {  // from the second version on
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};

struct nvmlProcessDetail_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};

struct nvmlProcessDetailList_t {
  unsigned version;
  unsigned mode;  // NVML_PROCESS_MODE_…
  unsigned numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
};

struct nvmlUUID_t {
  unsigned version;
  unsigned type;  // NVML_UUID_TYPE_…
  union {
    char str[41];
    unsigned char bytes[16];
  } value;
};

struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned valueType;
  nvmlReturn_t nvmlReturn;  // of this field alone
  unsigned long long value;
};

static_assert(sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlPciInfoExt_t) == 64);
static_assert(sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlProcessInfo_t) == 24);
static_assert(sizeof(nvmlProcessDetail_v1_t) == 32 && sizeof(nvmlProcessDetailList_t) == 24);
static_assert(sizeof(nvmlUUID_t) == 52 && sizeof(nvmlFieldValue_t) == 40);

// What a program can find in the library.
#define NVML_EXPORT extern "C" __attribute__((visibility("default")))
