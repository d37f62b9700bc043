// What the driver and a device say of themselves.
#include <cstring>

#include "check.h"

namespace conformance {
namespace {

void Attributes(CUdevice device) {
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = -1;
    const CUresult result =
        cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device);
    std::printf("device attribute %d = code %d value %d\n", i, result, value);
  }
  int value = 0;
  CODE(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), device));
  CODE(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), device));
  CODE(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  CODE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  CODE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
}

void ErrorWords() {
  for (int code = 0; code < 1000; ++code) {
    const char *name = nullptr, *text = nullptr;
    const CUresult found = cuGetErrorName(static_cast<CUresult>(code), &name);
    if (found != CUDA_SUCCESS && code % 100 != 99) continue;
    cuGetErrorString(static_cast<CUresult>(code), &text);
    std::printf("error name %d = %d '%s'\n", code, found, name == nullptr ? "" : name);
    std::printf("error text %d = '%s'\n", code, text == nullptr ? "" : text);
  }
}

}  // namespace

void Devices() {
  int count = -1, major = 0, minor = 0;
  CODE(cuDeviceGetCount(&count));  // before cuInit
  CODE(cuInit(1));
  CODE(cuInit(0));
  CODE(cuInit(0));
  CODE(cuDeviceGetCount(&count));
  VALUE(count);
  CODE(cuDeviceGetCount(nullptr));
  CODE(cuDriverGetVersion(nullptr));
  int version = 0;
  CODE(cuDriverGetVersion(&version));
  VALUE(version / 1000);
  CUdevice device = -1;
  CODE(cuDeviceGet(&device, count));
  CODE(cuDeviceGet(&device, -1));
  CODE(cuDeviceGet(nullptr, 0));
  CODE(cuDeviceGet(&device, 0));
  VALUE(device);
  char name[256] = {}, shorter[6] = {}, bus[32] = {};
  CODE(cuDeviceGetName(name, sizeof name, device));
  TEXT(name);
  CODE(cuDeviceGetName(shorter, sizeof shorter, device));
  TEXT(shorter);
  CODE(cuDeviceGetName(nullptr, 10, device));
  CODE(cuDeviceGetPCIBusId(bus, sizeof bus, device));
  TEXT(bus);
  CODE(cuDeviceGetPCIBusId(shorter, 4, device));
  CUdevice by_bus = -1;
  CODE(cuDeviceGetByPCIBusId(&by_bus, bus));
  CODE(cuDeviceGetByPCIBusId(&by_bus, "no bus"));
  size_t total = 0;
  CODE(cuDeviceTotalMem(&total, device));
  VALUE(total);
  CODE(cuDeviceTotalMem(&total, 99));
  CODE(cuDeviceComputeCapability(&major, &minor, device));
  VALUE(major * 10 + minor);
  CUuuid uuid = {};
  CODE(cuDeviceGetUuid(&uuid, device));
  VALUE(Digest(&uuid, sizeof uuid));
  int can = -1;
  CODE(cuDeviceCanAccessPeer(&can, device, device));
  VALUE(can);
  CODE(cuDeviceCanAccessPeer(&can, device, 99));
  Attributes(device);
  ErrorWords();
  size_t width = 0;
  CODE(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, device));
  VALUE(width);
  CUdevprop properties = {};
  CODE(cuDeviceGetProperties(&properties, device));
  VALUE(Digest(&properties, sizeof properties));
}

}  // namespace conformance
