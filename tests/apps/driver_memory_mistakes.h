// Wrong calls of driver_memory_random: each has its code, and changes no byte.
#pragma once

#include "driver_memory_objects.h"

#define EXPECT_CODE(call, wanted)                                                      \
  do {                                                                                 \
    const CUresult found_code = (call);                                                \
    EXPECT(found_code == (wanted), "%s gave %d", #call, static_cast<int>(found_code)); \
  } while (false)

namespace {

class Mistakes {
 public:
  explicit Mistakes(Machine& machine) : machine_(machine), random_(machine.random) {}

  void Make(Memory* memory, Objects& objects) {
    machine_.Enter(memory->context);
    if (memory->is_array()) {
      OfArray(*memory);
    } else if (memory->is_host()) {
      OfHost(*memory);
    } else {
      OfDevice(*memory);
    }
    OfSizes();
    if (random_.OneOf(4)) FreeTwice(objects);
  }

 private:
  static constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

  // Longer than any memory.
  static constexpr size_t kFar = size_t{1} << 44;

  void OfDevice(const Memory& memory) {
    uint8_t byte = 0;
    const CUdeviceptr at = memory.address;
    const bool apart = memory.bytes() > 1;
    switch (random_.Below(8)) {
      case 0:
        EXPECT_CODE(cuMemcpyDtoH(&byte, at, kFar), kInvalid);
        break;
      case 1:
        EXPECT_CODE(cuMemsetD8(at, 1, kFar), kInvalid);
        break;
      case 2:
        EXPECT_CODE(cuMemsetD32(at + (4 - at % 4) + 1, 1, 1), kInvalid);
        break;
      case 3:
        EXPECT_CODE(cuMemsetD2D16(at + at % 2, 3, 1, 1, 2), kInvalid);
        break;
      case 4:
        if (apart) EXPECT_CODE(cuMemFree(at + 1), kInvalid);
        break;
      case 5:
        if (apart) EXPECT_CODE(cuMemFreeAsync(at + 1, nullptr), kInvalid);
        break;
      case 6:
        EXPECT_CODE(cuMemcpyDtoDAsync(at, at, kFar, nullptr), kInvalid);
        break;
      default:
        if (memory.kind == Kind::kMapped) {
          EXPECT_CODE(cuMemFree(at), kInvalid);
          EXPECT_CODE(cuMemUnmap(at + 1, memory.bytes()), kInvalid);
          EXPECT_CODE(cuMemMap(at, memory.bytes(), 4096, 0, 0), kInvalid);
        }
        CHECK_DRIVER(cuMemcpyDtoH(nullptr, at, 0));
        CHECK_DRIVER(cuMemsetD8(at, 1, 0));
    }
  }
  void OfHost(const Memory& memory) {
    auto* at = reinterpret_cast<void*>(memory.address);
    CUdeviceptr device = 0;
    if (memory.kind == Kind::kPageable) {
      EXPECT_CODE(cuMemFreeHost(at), kInvalid);
      EXPECT_CODE(cuMemFree(memory.address), kInvalid);
      EXPECT_CODE(cuMemcpyHtoD(memory.address, at, 1), kInvalid);
    } else {
      CHECK_DRIVER(cuMemHostGetDevicePointer(&device, at, 0));
      EXPECT(memory.kind == Kind::kRegistered || device == memory.address,
             "the device has pinned memory at %llx", device);
    }
    if (memory.kind == Kind::kRegistered) {
      EXPECT_CODE(cuMemHostRegister(at, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
  }
  static void OfArray(const Memory& memory) {
    Bytes row(memory.width + memory.element);
    CUDA_MEMCPY2D plane{};
    plane.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    plane.srcArray = memory.array;
    plane.dstMemoryType = CU_MEMORYTYPE_HOST;
    plane.dstHost = row.data();
    plane.WidthInBytes = row.size();
    plane.Height = 1;
    if (memory.height == 0) EXPECT_CODE(cuMemcpy2D(&plane), kInvalid);
    plane.WidthInBytes = memory.element;
    plane.srcY = std::max<size_t>(1, memory.height);
    if (memory.depth == 0) EXPECT_CODE(cuMemcpy2D(&plane), kInvalid);
  }
  static void OfSizes() {
    CUdeviceptr address = 0;
    size_t pitch = 0;
    EXPECT_CODE(cuMemAlloc(&address, 0), kInvalid);
    EXPECT_CODE(cuMemAllocPitch(&address, &pitch, 64, 2, 3), kInvalid);
    EXPECT_CODE(cuMemAlloc(&address, kFar), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CODE(cuMemAddressReserve(&address, 0, 0, 0, 0), kInvalid);
  }
  // What has just been freed, before anything else can lie there.
  void FreeTwice(Objects& objects) {
    const Memory* memory = objects.Any(
        [](const Memory& it) { return it.kind == Kind::kAllocated || it.kind == Kind::kPooled; });
    if (memory == nullptr) return;
    const CUdeviceptr at = memory->address;
    const int context = memory->context;
    const bool pooled = memory->kind == Kind::kPooled;
    objects.Free(memory);
    machine_.Enter(context);
    EXPECT_CODE(cuMemFree(at), kInvalid);
    if (pooled) EXPECT_CODE(cuMemFreeAsync(at, nullptr), kInvalid);
  }

  Machine& machine_;
  Random& random_;
};

}  // namespace
