// What goes wrong late. These tests run last: the context is poisoned afterwards.
#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

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
