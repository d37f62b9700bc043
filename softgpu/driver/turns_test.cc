// Contexts of a device take turns: what a kernel of one writes in its turn is seen by kernels of
// the others as a whole, and no context starves another.
#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

// Storing all takes less than a turn, and long enough that kernels of two contexts that did
// not take turns would now and then run in the midst of it, also on one processor.
constexpr unsigned kWords = 49152, kStates = 150;

class TurnsTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    first_ = LoadKernels();
    first_stream_ = NewStream();
    ASSERT_CU(cuMemAlloc(&data_, 4 * kWords));
    ASSERT_CU(cuMemsetD8(data_, 0, 4 * kWords));
    ASSERT_CU(cuCtxCreate(&other_, nullptr, 0, 0));
    second_ = LoadKernels();
    second_stream_ = NewStream();
  }
  void TearDown() override {
    cuCtxDestroy(other_);
    DeviceTest::TearDown();
  }
  void LaunchIn(CUcontext context, const char* name, void** parameters) {
    ASSERT_CU(cuCtxSetCurrent(context));
    const bool other = context == other_;
    ASSERT_CU(cuLaunchKernel(Function(other ? second_ : first_, name), 1, 1, 1, 1, 1, 1, 0,
                             other ? second_stream_ : first_stream_, parameters, nullptr));
  }
  CUdeviceptr Address(volatile uint32_t* flag) {
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemHostGetDevicePointer(&address, const_cast<uint32_t*>(flag), 0));
    return address;
  }

  CUcontext other_ = nullptr;
  CUmodule first_ = nullptr, second_ = nullptr;
  CUstream first_stream_ = nullptr, second_stream_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(TurnsTest, WhatOneWritesIsSeenAsAWhole) {
  volatile uint32_t* flag = NewFlag();
  CUdeviceptr stop = Address(flag), seen = 0;
  unsigned count = kWords;
  ASSERT_CU(cuMemAlloc(&seen, 8));
  void* look[] = {&data_, &count, &stop, &seen};
  LaunchIn(context_, "LookAtAll", look);
  for (unsigned value = 1; value <= kStates; ++value) {
    void* store[] = {&data_, &count, &value};
    LaunchIn(other_, "StoreAll", store);
    ASSERT_CU(cuStreamSynchronize(second_stream_));
  }
  *flag = 1;
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamSynchronize(first_stream_));
  unsigned result[2] = {};
  ASSERT_CU(cuMemcpyDtoH(result, seen, 8));
  EXPECT_GT(result[0], 0u);
  EXPECT_EQ(result[1], 0u) << "of " << result[0];
}

TEST_F(TurnsTest, AKernelThatSpinsLeavesTheOthersTheirTurns) {
  volatile uint32_t* flag = NewFlag();
  CUdeviceptr address = Address(flag);
  void* spin[] = {&address};
  LaunchIn(context_, "Spin", spin);
  unsigned value = 7;
  void* store[] = {&data_, &value};
  for (int i = 0; i < 3; ++i) LaunchIn(other_, "Store", store);
  ASSERT_CU(cuStreamSynchronize(second_stream_));
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(cuStreamQuery(first_stream_), CUDA_ERROR_NOT_READY);
  *flag = 1;
  ASSERT_CU(cuStreamSynchronize(first_stream_));
}

TEST_F(TurnsTest, KernelsOfTwoContextsMayWaitForEachOther) {
  unsigned even = 0, odd = 1, last = 40;
  void* first[] = {&data_, &even, &last};
  void* second[] = {&data_, &odd, &last};
  LaunchIn(context_, "Alternate", first);
  LaunchIn(other_, "Alternate", second);
  ASSERT_CU(cuStreamSynchronize(second_stream_));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamSynchronize(first_stream_));
  unsigned value = 0;
  ASSERT_CU(cuMemcpyDtoH(&value, data_, 4));
  EXPECT_EQ(value, last);
}

}  // namespace
}  // namespace softgpu
