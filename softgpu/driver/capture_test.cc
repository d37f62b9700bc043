// Stream capture: what becomes of captured work, forks and joins, and what is refused meanwhile.
#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class CaptureTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    module_ = LoadKernels();
    stream_ = NewStream();
    other_ = NewStream();
    ASSERT_CU(cuMemAlloc(&data_, 4096));
    ASSERT_CU(cuMemsetD32(data_, 0, 1024));
    ASSERT_CU(cuCtxSynchronize());  // the streams of these tests do not wait for the legacy one
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    ASSERT_CU(cuEventCreate(&joined_, CU_EVENT_DISABLE_TIMING));
  }
  void Begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_CU(cuStreamBeginCapture(stream_, mode));
  }
  CUresult Increment(CUstream stream, size_t word) {
    CUdeviceptr target = data_ + 4 * word;
    void* parameters[] = {&target};
    return cuLaunchKernel(Function(module_, "Increment"), 1, 1, 1, 32, 1, 1, 0, stream, parameters,
                          nullptr);
  }
  unsigned Word(size_t index) {
    unsigned value = 0;
    EXPECT_CU(cuMemcpyDtoH(&value, data_ + 4 * index, 4));
    return value;
  }
  size_t NodeCount(CUgraph graph) {
    size_t count = 0;
    EXPECT_CU(cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }
  void ExpectInvalidated() {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
  }

  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr, other_ = nullptr;
  CUevent event_ = nullptr, joined_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(CaptureTest, CapturedWorkRunsOnlyWhenLaunched) {
  auto* pinned = const_cast<uint32_t*>(NewFlag());
  Begin();
  ASSERT_CU(cuMemcpyHtoDAsync(data_, pinned, 4, stream_));
  ASSERT_CU(Increment(stream_, 0));
  ASSERT_CU(cuMemsetD32Async(data_ + 4, 8, 1, stream_));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(NodeCount(graph), 3u);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(1), 0u);
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (uint32_t i = 0; i < 3; ++i) {
    *pinned = 100 * i;  // read at each launch
    ASSERT_CU(cuGraphLaunch(exec, stream_));
    ASSERT_CU(cuStreamSynchronize(stream_));
    EXPECT_EQ(Word(0), 100 * i + 32);
  }
  EXPECT_EQ(Word(1), 8u);
}

TEST_F(CaptureTest, EventsForkAndJoinStreams) {
  Begin();
  ASSERT_CU(Increment(stream_, 0));
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  CUstreamCaptureStatus status;
  ASSERT_CU(cuStreamIsCapturing(other_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CU(Increment(other_, 1));
  ASSERT_CU(Increment(stream_, 2));
  ASSERT_CU(cuEventRecord(joined_, other_));
  ASSERT_CU(cuStreamWaitEvent(stream_, joined_, 0));
  ASSERT_CU(Increment(stream_, 3));
  CUgraph from_info = nullptr, graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  size_t count = 0;
  cuuint64_t id = 0;
  ASSERT_CU(
      cuStreamGetCaptureInfo_v3(stream_, &status, &id, &from_info, &dependencies, nullptr, &count));
  EXPECT_EQ(count, 1u);
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(graph, from_info);
  size_t edges = 0;
  ASSERT_CU(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(NodeCount(graph), 4u);
  EXPECT_EQ(edges, 4u);
  ASSERT_CU(cuStreamIsCapturing(other_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuStreamSynchronize(stream_));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Word(i), 32u) << i;
}

TEST_F(CaptureTest, UnjoinedAndUnmatchedEnds) {
  Begin();
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event_, 0));
  ASSERT_CU(Increment(other_, 0));
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_CU(cuStreamSynchronize(other_));
}

TEST_F(CaptureTest, WaitingForACapturingStreamSpoilsIt) {
  Begin();
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(Increment(stream_, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ExpectInvalidated();
  Begin();
  ASSERT_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_CAPTURED_EVENT);
  ExpectInvalidated();
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_INVALID_VALUE) << "until it is recorded again";
  ASSERT_CU(cuEventRecord(event_, stream_));
  EXPECT_CU(cuEventSynchronize(event_));
}

TEST_F(CaptureTest, TheLegacyStreamIsImplicitlyPartOfBlockingStreams) {
  CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  ASSERT_CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuMemsetD32(data_, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(CaptureTest, ModesDecideWhoMayDisturb) {
  CUdeviceptr memory = 0;
  Begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectInvalidated();
  Begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  std::thread([&] {  // another thread may
    ASSERT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(cuMemAlloc(&memory, 16));
    EXPECT_CU(cuEventQuery(event_));
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  })
      .join();
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_CU(cuMemAlloc(&memory, 16));
  ASSERT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
}

TEST_F(CaptureTest, CapturesMayNotMerge) {
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(cuEventRecord(event_, stream_));
  ASSERT_CU(cuStreamBeginCapture(other_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CUevent outside = nullptr;
  ASSERT_CU(cuEventCreate(&outside, 0));
  EXPECT_EQ(cuStreamWaitEvent(other_, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
}

TEST_F(CaptureTest, MemoryOfAGraphKeepsItsAddress) {
  CUdeviceptr memory = 0;
  Begin();
  ASSERT_CU(cuMemAllocAsync(&memory, 4096, stream_));
  ASSERT_CU(cuMemsetD32Async(memory, 21, 1, stream_));
  ASSERT_CU(cuMemcpyDtoDAsync(data_, memory, 4, stream_));
  ASSERT_CU(cuMemFreeAsync(memory, stream_));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(NodeCount(graph), 4u);
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CU(cuGraphDestroy(graph));
  for (int i = 0; i < 2; ++i) {
    ASSERT_CU(cuMemsetD32(data_, 0, 1));
    ASSERT_CU(cuCtxSynchronize());
    ASSERT_CU(cuGraphLaunch(exec, stream_));
    ASSERT_CU(cuStreamSynchronize(stream_));
    EXPECT_EQ(Word(0), 21u);
  }
  EXPECT_CU(cuMemGetAddressRange(nullptr, nullptr, memory));
  ASSERT_CU(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuMemGetAddressRange(nullptr, nullptr, memory), CUDA_ERROR_NOT_FOUND);
}

TEST_F(CaptureTest, NoGraphIsLaunchedOrUploadedInACapture) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  Begin();
  ASSERT_CU(Increment(stream_, 0));
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectInvalidated();
  Begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuGraphUpload(exec, stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ExpectInvalidated();
}

TEST_F(CaptureTest, WhatWaitsForTheLegacyStreamGoesOnBesideAStrictCapture) {
  Begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  ASSERT_CU(cuMemsetD32(data_, 7, 1));
  unsigned word = 0;
  ASSERT_CU(cuMemcpyDtoH(&word, data_, sizeof word));
  EXPECT_EQ(word, 7u);
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(NodeCount(graph), 0u);
}

}  // namespace
}  // namespace softgpu
