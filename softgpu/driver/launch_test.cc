// Launches: results, configurations that are refused at once, occupancy.
#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class LaunchTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    module_ = LoadKernels();
    ASSERT_CU(cuMemAlloc(&data_, 1 << 20));
  }
  CUresult Launch(const char* name, unsigned grid, unsigned block, unsigned shared,
                  void** parameters) {
    return cuLaunchKernel(Function(module_, name), grid, 1, 1, block, 1, 1, shared, nullptr,
                          parameters, nullptr);
  }
  CUmodule module_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(LaunchTest, ScalesAnArray) {
  std::vector<float> values(10000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  int count = 10000;
  float factor = 2.5f;
  void* parameters[] = {&data_, &count, &factor};
  ASSERT_CU(cuMemcpyHtoD(data_, values.data(), 40000));
  ASSERT_CU(Launch("Scale", 40, 256, 0, parameters));
  ASSERT_CU(cuMemcpyDtoH(values.data(), data_, 40000));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], 2.5f * static_cast<float>(i)) << i;
  }
}

// Many ranges, so that their table grows; kernels find each one, and what they write is there.
TEST_F(LaunchTest, ReachesRegisteredHostMemory) {
  std::vector<std::vector<unsigned>> ranges(150, std::vector<unsigned>(2));
  for (auto& range : ranges) ASSERT_CU(cuMemHostRegister(range.data(), 8, 0));
  for (size_t i = 0; i < ranges.size(); i += 2) ASSERT_CU(cuMemHostUnregister(ranges[i].data()));
  for (size_t i = 1; i < ranges.size(); i += 2) {
    CUdeviceptr target = 0;
    auto value = static_cast<unsigned>(i);
    ASSERT_CU(cuMemHostGetDevicePointer(&target, &ranges[i][1], 0));
    void* parameters[] = {&target, &value};
    ASSERT_CU(Launch("Store", 1, 1, 0, parameters));
    void* counted[] = {&target};
    ASSERT_CU(Launch("Increment", 3, 64, 0, counted));
  }
  ASSERT_CU(cuCtxSynchronize());
  for (size_t i = 1; i < ranges.size(); i += 2) {
    EXPECT_EQ(ranges[i][0], 0u);
    EXPECT_EQ(ranges[i][1], i + 3 * 64);
    ASSERT_CU(cuMemHostUnregister(ranges[i].data()));
  }
}

TEST_F(LaunchTest, ExtraBufferAndLaunchKernelEx) {
  struct {
    CUdeviceptr target;
    unsigned value;
  } packed{data_, 31};
  size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUfunction store = Function(module_, "Store");
  ASSERT_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  unsigned value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, data_, 4));
  EXPECT_EQ(value, 31u);
  bytes = 8;
  EXPECT_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
            CUDA_ERROR_INVALID_VALUE);
  bytes = 12;
  packed.value = 32;
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {1, 1, 1};
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, nullptr, attributes, 2};
  ASSERT_CU(cuLaunchKernelEx(&config, store, nullptr, extra));
  ASSERT_CU(cuMemcpyDtoH(&value, data_, 4));
  EXPECT_EQ(value, 32u);
  attributes[0].value.clusterDim = {2, 1, 1};
  EXPECT_EQ(cuLaunchKernelEx(&config, store, nullptr, extra), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_F(LaunchTest, RefusesAtOnce) {
  void* parameters[] = {&data_};
  EXPECT_EQ(Launch("Increment", 0, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch("Increment", 1, 1025, 0, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch("Increment", 1, 1, 49 << 10, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch("Increment", 1, 1, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUfunction increment = Function(module_, "Increment");
  EXPECT_EQ(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 65, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchCooperativeKernel(increment, 100000, 1, 1, 32, 1, 1, 0, nullptr, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(0x1234), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           parameters, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuCtxSynchronize());  // none of them left a fault
}

TEST_F(LaunchTest, DynamicSharedMemoryBeyondTheDefaultNeedsTheAttribute) {
  void* parameters[] = {&data_};
  EXPECT_EQ(Launch("Rotate", 1, 64, 100 << 10, parameters), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuFuncSetAttribute(Function(module_, "Rotate"),
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
  ASSERT_CU(Launch("Rotate", 1, 64, 100 << 10, parameters));
  int values[64] = {};
  ASSERT_CU(cuMemcpyDtoH(values, data_, sizeof values));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[63], 0);
}

TEST_F(LaunchTest, KernelsReachPinnedMemory) {
  auto* flag = NewFlag();
  CUdeviceptr target = Address(flag);
  unsigned value = 99;
  void* parameters[] = {&target, &value};
  ASSERT_CU(Launch("Store", 1, 1, 0, parameters));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(*flag, 99u);
}

TEST_F(LaunchTest, ASpinningKernelHoldsOnlyItsStream) {
  auto* flag = NewFlag();
  CUdeviceptr address = Address(flag);
  CUstream spinning = NewStream(), other = NewStream();
  void* spin[] = {&address};
  ASSERT_CU(
      cuLaunchKernel(Function(module_, "Spin"), 1, 1, 1, 32, 1, 1, 0, spinning, spin, nullptr));
  void* increment[] = {&data_};
  ASSERT_CU(cuMemsetD32Async(data_, 0, 1, other));
  ASSERT_CU(cuLaunchKernel(Function(module_, "Increment"), 4, 1, 1, 64, 1, 1, 0, other, increment,
                           nullptr));
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(cuStreamQuery(spinning), CUDA_ERROR_NOT_READY);
  ASSERT_CU(cuStreamWriteValue32(other, address, 1, 0));
  EXPECT_CU(cuStreamSynchronize(spinning));
  unsigned value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, data_, 4));
  EXPECT_EQ(value, 256u);
}

TEST_F(LaunchTest, ResetEndsAKernelThatNeverReturns) {
  auto* flag = NewFlag();
  CUdeviceptr address = Address(flag);
  void* spin[] = {&address};
  ASSERT_CU(Launch("Spin", 1, 1, 0, spin));
  Pause();
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(LaunchTest, Occupancy) {
  CUfunction scale = Function(module_, "Scale");
  int blocks = 0, grid = 0, block = 0;
  ASSERT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0));
  EXPECT_EQ(blocks, 8);
  ASSERT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 100 << 10));
  EXPECT_EQ(blocks, 2);
  ASSERT_CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, scale, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 32);
  size_t shared = 0;
  ASSERT_CU(cuOccupancyAvailableDynamicSMemPerBlock(&shared, scale, 2, 256));
  EXPECT_EQ(shared, size_t{113} << 10);
}

}  // namespace
}  // namespace softgpu
