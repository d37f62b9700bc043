// Two devices: what their link can do, and boxes that are copied from one's memory to the other's.
#include <cstring>
#include <vector>

#include "driver_check.h"

constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;
constexpr size_t kPitch = 64, kRows = 8, kSlices = 4, kAll = kPitch * kRows * kSlices;

struct Device {
  CUdevice ordinal = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;

  explicit Device(int number) {
    CHECK_DRIVER(cuDeviceGet(&ordinal, number));
    CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, ordinal));
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuMemAlloc(&memory, kAll));
  }
  ~Device() { CHECK_DRIVER(cuCtxDestroy(context)); }
};

static void Link(const Device& a, const Device& b) {
  int access = -1, can = -1, native = -1, value = -1;
  const auto attribute = [&](int* out, CUdevice_P2PAttribute which) {
    return cuDeviceGetP2PAttribute(out, which, a.ordinal, b.ordinal);
  };
  CHECK_DRIVER(attribute(&access, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED));
  CHECK_DRIVER(cuDeviceCanAccessPeer(&can, a.ordinal, b.ordinal));
  EXPECT(access == can, "access is %d, and can be %d", access, can);
  CHECK_DRIVER(attribute(&native, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED));
  CHECK_DRIVER(attribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK));
  EXPECT(value >= 0, "the rank is %d", value);
  EXPECT(attribute(nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) == kInvalid, "nowhere");
  EXPECT(attribute(&value, static_cast<CUdevice_P2PAttribute>(99)) == kInvalid, "no attribute");
  EXPECT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a.ordinal,
                                 a.ordinal) == CUDA_ERROR_INVALID_DEVICE,
         "a device and itself");
  EXPECT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a.ordinal, 99) ==
             CUDA_ERROR_INVALID_DEVICE,
         "no device");

  const CUatomicOperation asked[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
  unsigned found[3] = {7, 7, 7};
  CHECK_DRIVER(cuDeviceGetP2PAtomicCapabilities(found, asked, 2, a.ordinal, b.ordinal));
  EXPECT(found[0] != 7 && found[1] != 7 && found[2] == 7, "capabilities %x and %x", found[0],
         found[1]);
  // NVLink has native atomics, of which NVIDIA's driver names none here.
  EXPECT_OF_MISTAKE((native != 0) == ((found[0] & CU_ATOMIC_CAPABILITY_SCALAR_32) != 0),
                    "capabilities %x, natively %d", found[0], native);
  EXPECT(cuDeviceGetP2PAtomicCapabilities(found, asked, 0, a.ordinal, b.ordinal) == kInvalid, "0");
  EXPECT(cuDeviceGetP2PAtomicCapabilities(found, nullptr, 1, a.ordinal, b.ordinal) == kInvalid, "");
  EXPECT(cuDeviceGetP2PAtomicCapabilities(found, asked, 2, a.ordinal, a.ordinal) ==
             CUDA_ERROR_INVALID_DEVICE,
         "a device and itself");
}

// A box from the first device's memory to another place in the second's.
static CUDA_MEMCPY3D_PEER Box(const Device& from, const Device& to) {
  CUDA_MEMCPY3D_PEER box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from.memory;
  box.dstDevice = to.memory;
  box.srcContext = from.context;
  box.dstContext = to.context;
  box.srcPitch = box.dstPitch = kPitch;
  box.srcHeight = box.dstHeight = kRows;
  box.srcXInBytes = 4;
  box.srcY = box.srcZ = 1;
  box.dstXInBytes = 16;
  box.dstY = 3;
  box.WidthInBytes = 24;
  box.Height = 5;
  box.Depth = 3;
  return box;
}

static void Copy(const Device& from, const Device& to) {
  std::vector<unsigned char> source(kAll), expected(kAll, 0xee), found(kAll);
  for (size_t i = 0; i < kAll; ++i) source[i] = static_cast<unsigned char>(i * 7 + i / 256);
  CHECK_DRIVER(cuCtxSetCurrent(to.context));
  CHECK_DRIVER(cuMemcpyHtoD(to.memory, expected.data(), kAll));
  CHECK_DRIVER(cuCtxSetCurrent(from.context));
  CHECK_DRIVER(cuMemcpyHtoDAsync(from.memory, source.data(), kAll, from.stream));
  const CUDA_MEMCPY3D_PEER box = Box(from, to);
  CHECK_DRIVER(cuMemcpy3DPeerAsync(&box, from.stream));
  CHECK_DRIVER(cuMemsetD8Async(from.memory, 0, kAll, from.stream));  // the copy comes before
  CHECK_DRIVER(cuStreamSynchronize(from.stream));
  for (size_t z = 0; z < box.Depth; ++z) {
    for (size_t y = 0; y < box.Height; ++y) {
      std::memcpy(&expected[(z * kRows + y + box.dstY) * kPitch + box.dstXInBytes],
                  &source[((z + 1) * kRows + y + 1) * kPitch + box.srcXInBytes], box.WidthInBytes);
    }
  }
  CHECK_DRIVER(cuCtxSetCurrent(to.context));
  CHECK_DRIVER(cuMemcpyDtoH(found.data(), to.memory, kAll));
  for (size_t i = 0; i < kAll; ++i) {
    EXPECT(found[i] == expected[i], "byte %zu is %u, not %u", i, found[i], expected[i]);
  }
  CHECK_DRIVER(cuCtxSetCurrent(from.context));
  CUDA_MEMCPY3D_PEER wrong = box;
  wrong.dstPitch = 16;  // less than a row of the box
  CUresult result = cuMemcpy3DPeerAsync(&wrong, from.stream);
  EXPECT(result == kInvalid, "rows that lie in each other: %d", result);
  wrong = box;
  wrong.Depth = 1 << 20;
  EXPECT_OF_MISTAKE(cuMemcpy3DPeerAsync(&wrong, from.stream) == kInvalid,
                    "a box beyond the memory");
  EXPECT_OF_MISTAKE(cuMemcpy3DPeerAsync(nullptr, from.stream) == kInvalid, "no box");
  CHECK_DRIVER(cuStreamSynchronize(from.stream));
}

int main() {
  CHECK_DRIVER(cuInit(0));
  {
    const Device first(0), second(1);
    Link(first, second);
    Link(second, first);
    Copy(first, second);
    Copy(second, first);
  }
  std::printf("PASS driver_peers\n");
  return 0;
}
