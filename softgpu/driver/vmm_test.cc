// Chunks, reservations, mappings, plain allocations and pinned memory.
#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class VmmTest : public DeviceTest {
 protected:
  CUmemGenericAllocationHandle NewChunk(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    auto properties = ChunkProperties();
    EXPECT_CU(cuMemCreate(&handle, bytes, &properties, 0));
    return handle;
  }
  CUdeviceptr Reserve(size_t bytes, CUdeviceptr hint = 0) {
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemAddressReserve(&address, bytes, 0, hint, 0));
    return address;
  }
  void MapReadWrite(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle) {
    auto access = ReadWrite();
    ASSERT_CU(cuMemMap(address, bytes, 0, handle, 0));
    ASSERT_CU(cuMemSetAccess(address, bytes, &access, 1));
  }
};

TEST_F(VmmTest, HonoursAFreeHintAndPicksAnotherPlaceElsewhere) {
  CUdeviceptr first = Reserve(64 * kChunk);
  ASSERT_CU(cuMemAddressFree(first, 64 * kChunk));
  CUdeviceptr hinted = Reserve(8 * kChunk, first + 4 * kChunk);
  EXPECT_EQ(hinted, first + 4 * kChunk);
  CUdeviceptr other = Reserve(8 * kChunk, hinted + kChunk);
  EXPECT_NE(other, hinted + kChunk);
  CUdeviceptr outside = Reserve(kChunk, 0x10000000000);
  EXPECT_NE(outside, CUdeviceptr{0x10000000000});
  EXPECT_CU(cuMemAddressFree(hinted, 8 * kChunk));
  EXPECT_CU(cuMemAddressFree(other, 8 * kChunk));
  EXPECT_CU(cuMemAddressFree(outside, kChunk));
  EXPECT_EQ(cuMemAddressFree(hinted, 8 * kChunk), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VmmTest, MapsWholeChunksOnly) {
  CUdeviceptr at = Reserve(8 * kChunk);
  auto handle = NewChunk(2 * kChunk);
  EXPECT_EQ(cuMemMap(at, kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(at + 4096, 2 * kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(at + 7 * kChunk, 2 * kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemMap(at, 2 * kChunk, 0, handle, 0));
  EXPECT_EQ(cuMemMap(at + kChunk, 2 * kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(at, 8 * kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(at, kChunk), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(at, 2 * kChunk));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(at, 8 * kChunk));
}

TEST_F(VmmTest, AccessComesOnlyWithSetAccess) {
  CUdeviceptr at = Reserve(2 * kChunk);  // the second half stays empty
  auto handle = NewChunk(kChunk);
  uint32_t value = 0;
  ASSERT_CU(cuMemMap(at, kChunk, 0, handle, 0));
  EXPECT_EQ(cuMemcpyDtoH(&value, at, 4), CUDA_ERROR_INVALID_VALUE);
  auto access = ReadWrite();
  ASSERT_CU(cuMemSetAccess(at, kChunk, &access, 1));
  EXPECT_CU(cuMemsetD32(at, 0xabcd, 1));
  EXPECT_CU(cuMemcpyDtoH(&value, at, 4));
  EXPECT_EQ(value, 0xabcdu);
  EXPECT_EQ(cuMemcpyDtoH(&value, at + kChunk - 2, 4), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemUnmap(at, kChunk));
  EXPECT_EQ(cuMemcpyDtoH(&value, at, 4), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(at, 2 * kChunk));
}

TEST_F(VmmTest, OneChunkCanBeMappedTwiceAndKeepsItsBytes) {
  CUdeviceptr at = Reserve(2 * kChunk);
  auto handle = NewChunk(kChunk);
  MapReadWrite(at, kChunk, handle);
  MapReadWrite(at + kChunk, kChunk, handle);
  EXPECT_CU(cuMemRelease(handle));  // the mappings keep the memory
  EXPECT_CU(cuMemsetD32(at + 64, 77, 1));
  uint32_t value = 0;
  EXPECT_CU(cuMemcpyDtoH(&value, at + kChunk + 64, 4));
  EXPECT_EQ(value, 77u);
  EXPECT_CU(cuMemUnmap(at, 2 * kChunk));
  EXPECT_CU(cuMemAddressFree(at, 2 * kChunk));
}

TEST_F(VmmTest, ReleasedMemoryIsReusedWithItsOldBytes) {
  CUdeviceptr at = Reserve(kChunk);
  auto handle = NewChunk(kChunk);
  MapReadWrite(at, kChunk, handle);
  ASSERT_CU(cuMemsetD32(at, 0x5ec7e7, kChunk / 4));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuMemUnmap(at, kChunk));
  ASSERT_CU(cuMemRelease(handle));
  handle = NewChunk(kChunk);
  MapReadWrite(at, kChunk, handle);
  uint32_t value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, at + kChunk - 4, 4));
  EXPECT_EQ(value, 0x5ec7e7u);
  ASSERT_CU(cuMemUnmap(at, kChunk));
  ASSERT_CU(cuMemRelease(handle));
  ASSERT_CU(cuMemAddressFree(at, kChunk));
}

TEST_F(VmmTest, TheTotalIsALimit) {
  size_t free_before = 0, total = 0, free_now = 0;
  ASSERT_CU(cuMemGetInfo(&free_before, &total));
  auto most = NewChunk(free_before);
  ASSERT_CU(cuMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, 0u);
  CUmemGenericAllocationHandle another = 0;
  auto properties = ChunkProperties();
  EXPECT_EQ(cuMemCreate(&another, kChunk, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemRelease(most));
  ASSERT_CU(cuMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, free_before);
}

TEST_F(VmmTest, SmallAllocationsShareAChunk) {
  CUdeviceptr a = 0, b = 0, base = 0;
  size_t bytes = 0;
  ASSERT_CU(cuMemAlloc(&a, 100));
  ASSERT_CU(cuMemAlloc(&b, 1000));
  EXPECT_EQ(a / kChunk, b / kChunk);
  EXPECT_EQ(a % 512, 0u);
  ASSERT_CU(cuMemGetAddressRange(&base, &bytes, b + 999));
  EXPECT_EQ(base, b);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_CU(cuMemFree(a));
  EXPECT_CU(cuMemFree(b));
  EXPECT_EQ(cuMemFree(b), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(0));
}

TEST_F(VmmTest, PinnedMemoryIsTheSameOnBothSides) {
  void* pinned = nullptr;
  ASSERT_CU(cuMemHostAlloc(&pinned, 10000, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemHostGetDevicePointer(&device, pinned, 0));
  EXPECT_EQ(device, Address(pinned));
  ASSERT_CU(cuMemsetD8(device, 9, 10000));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[9999], 9);
  unsigned type = 0;
  ASSERT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_CU(cuMemFreeHost(pinned));
}

TEST_F(VmmTest, RegisteredHostMemoryHasItsOwnAddress) {
  std::vector<char> host(8192);
  ASSERT_CU(cuMemHostRegister(host.data(), host.size(), 0));
  EXPECT_EQ(cuMemHostRegister(host.data() + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemHostGetDevicePointer(&device, host.data() + 5, 0));
  EXPECT_EQ(device, Address(host.data() + 5));
  ASSERT_CU(cuMemsetD8(device, 9, 100));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(host[4] + host[5] + host[104] + host[105], 18);
  EXPECT_EQ(cuMemsetD8(device, 9, host.size() - 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemHostUnregister(host.data()));
  EXPECT_EQ(cuMemsetD8(device, 9, 100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(VmmTest, CopiesRowsAndSlices) {
  CUdeviceptr device = 0;
  size_t pitch = 0;
  ASSERT_CU(cuMemAllocPitch(&device, &pitch, 10, 4, 4));
  std::vector<uint8_t> source(40), target(60, 0xff);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = 10;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 10;
  copy.Height = 4;
  ASSERT_CU(cuMemcpy2D(&copy));
  CUDA_MEMCPY3D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = device;
  back.srcPitch = pitch;
  back.srcHeight = 2;
  back.srcXInBytes = 2;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = target.data();
  back.dstPitch = 15;
  back.dstHeight = 2;
  back.WidthInBytes = 3;
  back.Height = 2;
  back.Depth = 2;
  ASSERT_CU(cuMemcpy3D(&back));
  EXPECT_EQ(target[0], 2);
  EXPECT_EQ(target[3], 0xff);
  EXPECT_EQ(target[15 + 2], 14);
  EXPECT_EQ(target[45 + 1], 33);
  back.srcPitch = 2;
  EXPECT_EQ(cuMemcpy3D(&back), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(device));
}

}  // namespace
}  // namespace softgpu
