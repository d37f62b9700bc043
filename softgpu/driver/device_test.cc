// Two devices in one process: separate totals, distinct identities, one address space.
#include <cstdlib>
#include <cstring>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class TwoDevicesTest : public DeviceTest {
 protected:
  static void SetUpTestSuite() {  // before the first cuInit of this process
    setenv("LONGWIRE_SOFTWARE_DEVICES", "2", 1);
    setenv("LONGWIRE_SOFTGPU_MEMORY", "67108864", 1);
  }
};

TEST_F(TwoDevicesTest, HaveTheirOwnTotals) {
  int count = 0;
  ASSERT_CU(cuDeviceGetCount(&count));
  ASSERT_EQ(count, 2);
  size_t total = 0;
  ASSERT_CU(cuDeviceTotalMem(&total, 1));
  EXPECT_EQ(total, size_t{64} << 20);
  CUmemGenericAllocationHandle first = 0, second = 0, third = 0;
  auto on_first = ChunkProperties(0), on_second = ChunkProperties(1);
  ASSERT_CU(cuMemCreate(&first, 64 << 20, &on_first, 0));
  EXPECT_EQ(cuMemCreate(&third, kChunk, &on_first, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemCreate(&second, 64 << 20, &on_second, 0));
  EXPECT_CU(cuMemRelease(first));
  EXPECT_CU(cuMemRelease(second));
}

TEST_F(TwoDevicesTest, HaveTheirOwnIdentities) {
  CUuuid first = {}, second = {};
  ASSERT_CU(cuDeviceGetUuid(&first, 0));
  ASSERT_CU(cuDeviceGetUuid(&second, 1));
  EXPECT_NE(memcmp(&first, &second, sizeof first), 0);
  char first_bus[32] = {}, second_bus[32] = {};
  ASSERT_CU(cuDeviceGetPCIBusId(first_bus, 32, 0));
  ASSERT_CU(cuDeviceGetPCIBusId(second_bus, 32, 1));
  EXPECT_STRNE(first_bus, second_bus);
  CUcontext other = nullptr;
  CUdevice device = -1;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&other, 1));
  EXPECT_NE(other, context_);
  ASSERT_CU(cuCtxGetDevice_v2(&device, other));
  EXPECT_EQ(device, 1);
  EXPECT_CU(cuDevicePrimaryCtxRelease(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(TwoDevicesTest, CopyBetweenThem) {
  CUcontext other = nullptr;
  CUdeviceptr mine = 0, theirs = 0;
  ASSERT_CU(cuMemAlloc(&mine, 4));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&other, 1));
  ASSERT_CU(cuCtxSetCurrent(other));
  ASSERT_CU(cuMemAlloc(&theirs, 4));
  ASSERT_CU(cuMemsetD32(theirs, 12, 1));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuMemcpyPeer(mine, context_, theirs, other, 4));
  uint32_t value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, mine, 4));
  EXPECT_EQ(value, 12u);
  EXPECT_CU(cuDevicePrimaryCtxRelease(1));
}

}  // namespace
}  // namespace softgpu
