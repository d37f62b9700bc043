// Memory of the program that is pinned: overlaps, inner pointers, strangers, flags.
#include <sys/mman.h>

#include <cstdlib>

#include "check.h"

namespace conformance {
namespace {

constexpr size_t kPage = 4096;

void Overlaps(char* memory) {
  CODE(cuMemHostRegister(memory, 4 * kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
  CODE(cuMemHostRegister(memory, 4 * kPage, 0));
  CODE(cuMemHostRegister(memory + kPage, kPage, 0));
  CODE(cuMemHostRegister(memory + 3 * kPage, 2 * kPage, 0));
  CODE(cuMemHostRegister(memory, 8 * kPage, 0));
  CODE(cuMemHostUnregister(memory + kPage));
  CODE(cuMemHostUnregister(memory + 16));
  CODE(cuMemHostUnregister(memory + 6 * kPage));
  CODE(cuMemHostUnregister(memory));
  CODE(cuMemHostUnregister(memory));
  CODE(cuMemHostUnregister(nullptr));
  CODE(cuMemHostRegister(memory + kPage, kPage, 0));
  CODE(cuMemHostRegister(memory, kPage, 0));
  CODE(cuMemHostUnregister(memory));
  CODE(cuMemHostUnregister(memory + kPage));
}

void Values(char* memory) {
  CUdeviceptr device = 0;
  unsigned flags = 0;
  CODE(cuMemHostRegister(memory, 0, 0));
  CODE(cuMemHostRegister(nullptr, kPage, 0));
  CODE(cuMemHostRegister(memory, kPage, 0x100));
  if (CODE(cuMemHostRegister(memory, kPage, CU_MEMHOSTREGISTER_IOMEMORY)) == CUDA_SUCCESS) {
    cuMemHostUnregister(memory);
  }
  void* gone = mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, 2 * kPage);
  CODE(cuMemHostRegister(gone, 2 * kPage, 0));
  CODE(cuMemHostGetDevicePointer(&device, memory, 0));
  CODE(cuMemHostGetFlags(&flags, memory));
  CODE(cuMemHostRegister(memory, kPage, CU_MEMHOSTREGISTER_PORTABLE));
  CODE(cuMemHostGetFlags(&flags, memory));
  CODE(cuMemHostGetDevicePointer(&device, memory, 1));
  CODE(cuMemHostGetDevicePointer(nullptr, memory, 0));
  CODE(cuMemFreeHost(memory));
  CODE(cuMemHostUnregister(memory));
  // Not rounded to pages.
  CODE(cuMemHostRegister(memory + 100, 50, 0));
  CODE(cuMemHostRegister(memory + 200, 50, 0));
  CODE(cuMemHostUnregister(memory + 100));
  CODE(cuMemHostUnregister(memory + 200));
}

void Allocated() {
  for (const unsigned asked :
       {0u, 1u, 2u, 3u, unsigned{CU_MEMHOSTALLOC_WRITECOMBINED}, 7u, 8u, 0x100u}) {
    char* pinned = nullptr;
    unsigned flags = 99;
    if (CODE(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4 * kPage, asked)) != 0) continue;
    CODE(cuMemHostGetFlags(&flags, pinned));
    VALUE(flags);
    CODE(cuMemHostGetFlags(&flags, pinned + kPage));
    CODE(cuMemHostGetFlags(nullptr, pinned));
    CODE(cuMemHostUnregister(pinned));
    CODE(cuMemHostUnregister(pinned + kPage));
    CODE(cuMemHostRegister(pinned, kPage, 0));
    CODE(cuMemHostRegister(pinned + kPage, kPage, 0));
    CODE(cuMemFreeHost(pinned + kPage));
    CODE(cuMemFreeHost(pinned));
    CODE(cuMemFreeHost(pinned));
  }
  void* pinned = nullptr;
  unsigned flags = 99;
  CODE(cuMemAllocHost(&pinned, kPage));
  CODE(cuMemHostGetFlags(&flags, pinned));
  VALUE(flags);
  CODE(cuMemFreeHost(pinned));
  CODE(cuMemAllocHost(&pinned, 0));
  CODE(cuMemAllocHost(nullptr, kPage));
  CODE(cuMemHostAlloc(&pinned, size_t{1} << 50, 0));
  CODE(cuMemAllocHost(&pinned, size_t{1} << 50));
  CODE(cuMemFreeHost(nullptr));
}

// Device and managed memory is no memory that could be registered.
void OfDevices() {
  CUdeviceptr device = 0, managed = 0;
  CODE(cuMemAlloc(&device, kPage));
  CODE(cuMemAllocManaged(&managed, kPage, CU_MEM_ATTACH_GLOBAL));
  CODE(cuMemHostRegister(reinterpret_cast<void*>(device), kPage, 0));
  CODE(cuMemHostUnregister(reinterpret_cast<void*>(device)));
  CODE(cuMemHostUnregister(reinterpret_cast<void*>(managed)));
  CODE(cuMemFreeHost(reinterpret_cast<void*>(device)));
  CODE(cuMemFreeHost(reinterpret_cast<void*>(managed)));
  CODE(cuMemAllocManaged(&managed, kPage, 0));
  CODE(cuMemAllocManaged(&managed, 0, CU_MEM_ATTACH_GLOBAL));
  CODE(cuMemFree(managed));
  CODE(cuMemFree(device));
}

}  // namespace

void Registration() {
  InContext in;
  auto* memory = static_cast<char*>(std::aligned_alloc(kPage, 8 * kPage));
  for (size_t i = 0; i < 8 * kPage; ++i) memory[i] = 1;
  Overlaps(memory);
  Values(memory);
  Allocated();
  OfDevices();
  std::free(memory);
}

}  // namespace conformance
