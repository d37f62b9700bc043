// What registering memory answers to overlaps, inner pointers, strangers and memory that is pinned
// otherwise; and the flags of pinned memory.
#include <sys/mman.h>

#include "driver_program.h"

// A call's code, by name when it is another one.
#define EXPECT_CODE(call, wanted)                                                    \
  do {                                                                               \
    const CUresult code_found = (call);                                              \
    EXPECT(code_found == (wanted), "%s gave %d, not %d", #call, code_found, wanted); \
  } while (false)

static constexpr size_t kPage = 4096;

static void Overlaps(char* memory) {
  CHECK_DRIVER(cuMemHostRegister(memory, 4 * kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
  const size_t places[][2] = {{0, 4}, {1, 1}, {3, 2}, {0, 8}};
  for (const auto& place : places) {
    EXPECT_CODE(cuMemHostRegister(memory + place[0] * kPage, place[1] * kPage, 0),
                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  EXPECT_CODE(cuMemHostUnregister(memory + kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemHostUnregister(memory + 6 * kPage), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK_DRIVER(cuMemHostUnregister(memory));
  EXPECT_CODE(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  // Now it can be had in other pieces.
  CHECK_DRIVER(cuMemHostRegister(memory + kPage, kPage, 0));
  CHECK_DRIVER(cuMemHostRegister(memory + 2 * kPage, kPage, 0));
  EXPECT_CODE(cuMemHostRegister(memory, 2 * kPage, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK_DRIVER(cuMemHostUnregister(memory + kPage));
  CHECK_DRIVER(cuMemHostUnregister(memory + 2 * kPage));
}

static void Values(char* memory) {
  EXPECT_CODE(cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemHostRegister(nullptr, kPage, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemHostRegister(memory, kPage, 0x100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
  // There is nothing that could be pinned.
  void* gone = mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, 2 * kPage);
  EXPECT(cuMemHostRegister(gone, 2 * kPage, 0) != CUDA_SUCCESS, "memory that is not there");
  CHECK_DRIVER(cuMemHostRegister(memory, kPage, CU_MEMHOSTREGISTER_PORTABLE));
  EXPECT_CODE(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
  CHECK_DRIVER(cuMemHostUnregister(memory));
}

static void Allocated() {
  char* pinned = nullptr;
  for (unsigned asked :
       {0u, unsigned{CU_MEMHOSTALLOC_PORTABLE}, unsigned{CU_MEMHOSTALLOC_DEVICEMAP}}) {
    CHECK_DRIVER(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4 * kPage, asked));
    unsigned flags = 99;
    CHECK_DRIVER(cuMemHostGetFlags(&flags, pinned));
    EXPECT(flags == (asked | CU_MEMHOSTALLOC_DEVICEMAP), "flags of %u are %u", asked, flags);
    EXPECT_CODE(cuMemHostUnregister(pinned), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuMemHostUnregister(pinned + kPage), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuMemHostRegister(pinned, kPage, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuMemHostRegister(pinned + kPage, kPage, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuMemFreeHost(pinned + kPage), CUDA_ERROR_INVALID_VALUE);
    CHECK_DRIVER(cuMemFreeHost(pinned));
    EXPECT_CODE(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_DRIVER(cuMemAllocHost(reinterpret_cast<void**>(&pinned), kPage));
  unsigned flags = 99;
  CHECK_DRIVER(cuMemHostGetFlags(&flags, pinned));
  EXPECT(flags == CU_MEMHOSTALLOC_DEVICEMAP, "flags of cuMemAllocHost are %u", flags);
  CHECK_DRIVER(cuMemFreeHost(pinned));
  EXPECT_CODE(cuMemHostGetFlags(&flags, pinned), CUDA_ERROR_INVALID_VALUE);
  CHECK_DRIVER(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 0, 0));
  EXPECT(pinned == nullptr, "nothing lies at %p", pinned);
  EXPECT_CODE(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 0, 0x100),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 16, 0x100),
              CUDA_ERROR_INVALID_VALUE);
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  auto* memory = static_cast<char*>(std::aligned_alloc(kPage, 8 * kPage));
  std::memset(memory, 1, 8 * kPage);
  Overlaps(memory);
  Values(memory);
  Allocated();
  CHECK_DRIVER(cuCtxDestroy(context));
  std::free(memory);
  std::printf("PASS driver_pinned_codes\n");
  return 0;
}
