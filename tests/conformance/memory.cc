// Allocations, what an address is, pinned memory.
#include "check.h"

namespace conformance {
namespace {

void PointerAttributes(CUdeviceptr address, const char* what) {
  static const CUpointer_attribute kAsked[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_MAPPED,
      CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,   CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  for (const CUpointer_attribute attribute : kAsked) {
    unsigned long long value = 0;
    const CUresult result = cuPointerGetAttribute(&value, attribute, address);
    std::printf("%s: pointer attribute %d = code %d value %llu\n", what, attribute, result, value);
  }
  CUpointer_attribute both[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  unsigned type = 77, managed = 77;
  void* data[] = {&type, &managed};
  CODE(cuPointerGetAttributes(2, both, data, address));
  VALUE(type);
  VALUE(managed);
}

void Sizes() {
  static const size_t kSizes[] = {1, 255, 256, 511, 512, 4096, 1 << 20, (2 << 20) + 1, 64 << 20};
  for (const size_t size : kSizes) {
    CUdeviceptr address = 0, base = 0;
    size_t found = 0;
    CODE(cuMemAlloc(&address, size));
    VALUE(address % 256);
    CODE(cuMemGetAddressRange(&base, &found, address + size / 2));
    VALUE(base == address);
    VALUE(found);
    CODE(cuMemFree(address));
    CODE(cuMemFree(address));
  }
}

void Pinned() {
  void* pinned = nullptr;
  unsigned flags = 99;
  CUdeviceptr device = 0;
  CODE(cuMemHostAlloc(&pinned, 1 << 16, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  CODE(cuMemHostGetFlags(&flags, pinned));
  VALUE(flags);
  CODE(cuMemHostGetDevicePointer(&device, pinned, 0));
  VALUE(device == reinterpret_cast<CUdeviceptr>(pinned));
  PointerAttributes(reinterpret_cast<CUdeviceptr>(pinned), "pinned");
  CODE(cuMemFreeHost(pinned));
  CODE(cuMemFreeHost(pinned));
  CODE(cuMemHostAlloc(&pinned, 16, 0x100));
  CODE(cuMemHostAlloc(nullptr, 16, 0));
  std::vector<char> own(1 << 16);
  CODE(cuMemHostRegister(own.data(), own.size(), 0));
  CODE(cuMemHostRegister(own.data(), own.size(), 0));
  PointerAttributes(reinterpret_cast<CUdeviceptr>(own.data()), "registered");
  CODE(cuMemHostUnregister(own.data()));
  CODE(cuMemHostUnregister(own.data()));
  PointerAttributes(reinterpret_cast<CUdeviceptr>(own.data()), "pageable");
  CODE(cuMemHostRegister(nullptr, 10, 0));
}

}  // namespace

void Memory() {
  InContext in;
  Sizes();
  CUdeviceptr address = 0;
  size_t pitch = 0, free = 0, total = 0;
  CODE(cuMemAlloc(&address, 0));
  CODE(cuMemAlloc(nullptr, 16));
  CODE(cuMemAlloc(&address, size_t{1} << 50));
  CODE(cuMemAllocPitch(&address, &pitch, 100, 7, 4));
  VALUE(pitch);
  CODE(cuMemFree(address));
  CODE(cuMemAllocPitch(&address, &pitch, 100, 7, 3));
  CODE(cuMemAllocPitch(&address, &pitch, 0, 7, 4));
  CODE(cuMemGetInfo(&free, &total));
  VALUE(total);
  VALUE(free > 0 && free <= total);
  CODE(cuMemFree(0));
  CODE(cuMemFree(12345));
  CODE(cuMemGetAddressRange(&address, &pitch, 12345));
  CODE(cuMemAlloc(&address, 1000));
  CODE(cuMemFree(address + 16));
  PointerAttributes(address, "device");
  CODE(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  CODE(cuMemFree(address));
  PointerAttributes(address, "freed");
  Pinned();
}

}  // namespace conformance
