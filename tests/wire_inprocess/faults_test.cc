// What goes wrong late. These tests run last: the context is poisoned afterwards.
#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

// The driver's refusal comes late: natively the creation itself has failed.
TEST(ZFaults, AStreamThatTheServerCouldNotMakeHoldsNobodyUp) {
  Bench bench;
  CUstream stream = nullptr;
  CUdeviceptr data = 0;
  ASSERT_OK(cuMemAlloc_v2(&data, 64));  // first: the next call may get the refusal
  Driver().stream_result = CUDA_ERROR_OUT_OF_MEMORY;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  cuMemsetD8Async(data, 1, 64, stream);  // says what has come by then
  CUresult told = cuStreamSynchronize(stream);
  EXPECT_TRUE(told == CUDA_ERROR_OUT_OF_MEMORY || told == CUDA_ERROR_INVALID_HANDLE) << told;
  Driver().stream_result = CUDA_SUCCESS;
  while (cuCtxSynchronize() != CUDA_SUCCESS) continue;  // each failure is reported once
  EXPECT_OK(cuStreamDestroy_v2(stream));
  // Nor is there anything to destroy, which comes late, too: not in the next test.
  CUresult last = CUDA_SUCCESS;
  for (int i = 0; i < 5000 && last == CUDA_SUCCESS; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    last = cuCtxSynchronize();
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, last);
  EXPECT_OK(cuMemFree_v2(data));
}

TEST(ZFaults, APoisonedContextSaysSoFromEverything) {
  Bench bench;
  CUdeviceptr data = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_OK(cuMemAlloc_v2(&data, 64));
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventCreate(&event, 0));
  ASSERT_OK(cuCtxSynchronize());
  Driver().Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  bench.Add(stream, data, 1, 1);
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(stream));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventRecord(event, stream));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(event)) << "although never recorded";
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventQuery(event));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&data, 64));
  int value = 0;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH_v2(&value, data, 4));
  // What asks nothing of the context still works.
  EXPECT_OK(cuDeviceGetCount(&value));
  CUcontext current = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(bench.context, current);
}

}  // namespace
}  // namespace longwire::joined
