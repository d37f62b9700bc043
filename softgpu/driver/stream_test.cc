// Order and asynchrony of streams, events, host functions and values in memory.
#include <atomic>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class StreamTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    flag_ = NewFlag();
    mark_ = NewFlag();
  }
  // Holds the stream until Release().
  void Hold(CUstream stream) {
    ASSERT_CU(cuStreamWaitValue32(stream, Address(flag_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void Release() { __atomic_store_n(const_cast<uint32_t*>(flag_), 1, __ATOMIC_RELEASE); }
  uint32_t Mark() { return __atomic_load_n(const_cast<uint32_t*>(mark_), __ATOMIC_ACQUIRE); }
  void WriteMark(CUstream stream, uint32_t value) {
    ASSERT_CU(cuStreamWriteValue32(stream, Address(mark_), value, 0));
  }

  volatile uint32_t* flag_ = nullptr;
  volatile uint32_t* mark_ = nullptr;
};

TEST_F(StreamTest, AHeldStreamDoesNotHoldAnother) {
  CUstream held = NewStream(), free = NewStream();
  Hold(held);
  WriteMark(held, 5);
  WriteMark(free, 3);
  EXPECT_CU(cuStreamSynchronize(free));
  EXPECT_EQ(Mark(), 3u);
  EXPECT_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  Release();
  EXPECT_CU(cuStreamSynchronize(held));
  EXPECT_EQ(Mark(), 5u);
  EXPECT_CU(cuStreamQuery(held));
}

TEST_F(StreamTest, WaitConditions) {
  CUdeviceptr word = 0;
  ASSERT_CU(cuMemAlloc(&word, 8));
  CUstream waiter = NewStream(), writer = NewStream();
  struct Case {
    unsigned flags;
    uint64_t wanted, blocking, releasing;
  };
  const Case kCases[] = {{CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 11},
                         {CU_STREAM_WAIT_VALUE_GEQ, 10, ~0ull, 10},  // signed distance
                         {CU_STREAM_WAIT_VALUE_EQ, 1ull << 40, 1, 1ull << 40},
                         {CU_STREAM_WAIT_VALUE_AND, 6, 8, 12},
                         {CU_STREAM_WAIT_VALUE_NOR, ~1ull, 1, 0}};
  for (const Case& c : kCases) {
    ASSERT_CU(cuStreamWriteValue64(writer, word, c.blocking, 0));
    ASSERT_CU(cuStreamSynchronize(writer));
    ASSERT_CU(cuStreamWaitValue64(waiter, word, c.wanted, c.flags));
    Pause();
    EXPECT_EQ(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY) << c.flags;
    ASSERT_CU(cuStreamWriteValue64(writer, word, c.releasing, 0));
    EXPECT_CU(cuStreamSynchronize(waiter));
  }
  EXPECT_EQ(cuStreamWaitValue32(waiter, word + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue32(waiter, 0x1000, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(word));
}

TEST_F(StreamTest, TheLegacyStreamOrdersWithBlockingStreamsOnly) {
  CUstream blocking = NewStream(CU_STREAM_DEFAULT), exempt = NewStream();
  Hold(blocking);
  WriteMark(nullptr, 1);  // legacy: waits for `blocking`
  WriteMark(exempt, 2);
  EXPECT_CU(cuStreamSynchronize(exempt));
  Pause();
  EXPECT_EQ(Mark(), 2u);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  Release();
  EXPECT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(Mark(), 1u);
}

TEST_F(StreamTest, ThreadsHaveTheirOwnPerThreadStream) {
  Hold(CU_STREAM_PER_THREAD);
  std::thread([&] {
    ASSERT_CU(cuCtxSetCurrent(context_));
    WriteMark(CU_STREAM_PER_THREAD, 4);
    EXPECT_CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_EQ(Mark(), 4u);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  Release();
  EXPECT_CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(StreamTest, EventsOrderStreams) {
  CUstream first = NewStream(), second = NewStream();
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  EXPECT_CU(cuEventQuery(event));  // never recorded
  Hold(first);
  ASSERT_CU(cuEventRecord(event, first));
  ASSERT_CU(cuStreamWaitEvent(second, event, 0));
  WriteMark(second, 8);
  Pause();
  EXPECT_EQ(Mark(), 0u);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  Release();
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuStreamSynchronize(second));
  EXPECT_EQ(Mark(), 8u);
  EXPECT_CU(cuEventDestroy(event));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, ElapsedTime) {
  CUstream stream = NewStream();
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
  ASSERT_CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
  ASSERT_CU(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(cuEventRecord(start, stream));
  Hold(stream);
  ASSERT_CU(cuEventRecord(end, stream));
  ASSERT_CU(cuEventRecord(untimed, stream));
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  EXPECT_CU(cuEventSynchronize(start));  // the pause is counted from its end on
  Pause();
  Release();
  ASSERT_CU(cuStreamSynchronize(stream));
  ASSERT_CU(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 25.0f);
  EXPECT_LT(milliseconds, 60000.0f);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, HostFunctionsRunInOrderAndMayNotCallCuda) {
  CUstream stream = NewStream();
  struct State {
    std::atomic<int> result{-1};
    std::atomic<uint32_t> seen{0};
    volatile uint32_t* mark;
  } state;
  state.mark = mark_;
  WriteMark(stream, 6);
  ASSERT_CU(cuLaunchHostFunc(
      stream,
      [](void* data) {
        auto* s = static_cast<State*>(data);
        s->seen = __atomic_load_n(const_cast<uint32_t*>(s->mark), __ATOMIC_ACQUIRE);
        size_t free = 0, total = 0;
        s->result = cuMemGetInfo(&free, &total);
      },
      &state));
  WriteMark(stream, 7);
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(state.seen, 6u);
  EXPECT_EQ(state.result, int{CUDA_ERROR_NOT_PERMITTED});
  EXPECT_EQ(Mark(), 7u);
}

TEST_F(StreamTest, PageableSourcesAreTakenAtTheCall) {
  CUstream stream = NewStream();
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemAlloc(&device, 4));
  uint32_t value = 1, back = 0;
  Hold(stream);
  ASSERT_CU(cuMemcpyHtoDAsync(device, &value, 4, stream));
  value = 2;
  Release();
  ASSERT_CU(cuMemcpyDtoHAsync(&back, device, 4, stream));  // pageable: complete on return
  EXPECT_EQ(back, 1u);
}

TEST_F(StreamTest, PinnedCopiesAreReadWhenTheStreamReachesThem) {
  CUstream stream = NewStream();
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemAlloc(&device, 4));
  auto* source = const_cast<uint32_t*>(NewFlag());
  *source = 1;
  Hold(stream);
  ASSERT_CU(cuMemcpyHtoDAsync(device, source, 4, stream));
  *source = 2;
  Release();
  ASSERT_CU(cuStreamSynchronize(stream));
  uint32_t back = 0;
  ASSERT_CU(cuMemcpyDtoH(&back, device, 4));
  EXPECT_EQ(back, 2u);
}

TEST_F(StreamTest, StreamOrderedMemoryGoesBackInOrder) {
  CUstream stream = NewStream();
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemAllocAsync(&device, 8 << 20, stream));
  Hold(stream);
  ASSERT_CU(cuMemsetD8Async(device, 1, 8 << 20, stream));
  ASSERT_CU(cuMemFreeAsync(device, stream));
  EXPECT_CU(cuMemGetAddressRange(nullptr, nullptr, device));  // still there
  Release();
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(cuMemGetAddressRange(nullptr, nullptr, device), CUDA_ERROR_NOT_FOUND);
}

// Objects that are destroyed behind a launch serve it to its end, and go then.
TEST_F(StreamTest, DestroyedTexturesServeEarlierLaunches) {
  constexpr unsigned kWidth = 32, kHeight = 65536;  // 8 MiB
  CUfunction add = Function(LoadKernels(), "AddTexel");
  CUstream stream = NewStream(), other = NewStream();
  CUarray arrays[2];
  size_t all = 0, less = 0, free = 0;
  ASSERT_CU(cuMemGetInfo(&all, &free));
  const CUDA_ARRAY3D_DESCRIPTOR shape = {
      kWidth, kHeight, 0, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  int texels[kWidth];
  for (unsigned i = 0; i < kWidth; ++i) texels[i] = static_cast<int>(i + 1);
  for (CUarray& array : arrays) {
    ASSERT_CU(cuArray3DCreate(&array, &shape));
    ASSERT_CU(cuMemcpyHtoA(array, 0, texels, sizeof texels));
  }
  Hold(stream);
  for (int round = 0; round < 3; ++round) {
    CUDA_RESOURCE_DESC resource = {};
    CUDA_TEXTURE_DESC description = {};
    description.flags = CU_TRSF_READ_AS_INTEGER;
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    resource.res.array.hArray = arrays[0];
    ASSERT_CU(cuTexObjectCreate(&texture, &resource, &description, nullptr));
    resource.res.array.hArray = arrays[1];
    ASSERT_CU(cuSurfObjectCreate(&surface, &resource));
    void* parameters[] = {&texture, &surface};
    ASSERT_CU(cuLaunchKernel(add, 1, 1, 1, kWidth, 1, 1, 0, stream, parameters, nullptr));
    ASSERT_CU(cuTexObjectDestroy(texture));
    ASSERT_CU(cuSurfObjectDestroy(surface));
    EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuSurfObjectGetResourceDesc(&resource, surface), CUDA_ERROR_INVALID_VALUE);
    WriteMark(other, 1);  // later work that is over sooner
    ASSERT_CU(cuStreamSynchronize(other));
  }
  Release();
  ASSERT_CU(cuStreamSynchronize(stream));
  int sums[kWidth];
  ASSERT_CU(cuMemcpyAtoH(sums, arrays[1], 0, sizeof sums));
  for (unsigned i = 0; i < kWidth; ++i) EXPECT_EQ(sums[i], 4 * texels[i]);
  for (CUarray array : arrays) ASSERT_CU(cuArrayDestroy(array));
  ASSERT_CU(cuMemGetInfo(&less, &free));
  EXPECT_EQ(less, all);
}

TEST_F(StreamTest, ADestroyedStreamFinishesItsWork) {
  CUstream stream = NewStream();
  Hold(stream);
  WriteMark(stream, 9);
  EXPECT_CU(cuStreamDestroy(stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  Release();
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(Mark(), 9u);
}

TEST_F(StreamTest, AFullQueueHoldsItsCallerOnly) {
  CUstream full = NewStream(), other = NewStream();
  Hold(full);
  std::atomic<bool> finished{false};
  std::thread flood([&] {
    ASSERT_CU(cuCtxSetCurrent(context_));
    for (uint32_t i = 1; i <= 2000; ++i) WriteMark(full, i);
    finished = true;
  });
  Pause();
  EXPECT_FALSE(finished);
  EXPECT_CU(cuStreamWriteValue32(other, Address(flag_), 1, 0));
  flood.join();
  EXPECT_CU(cuStreamSynchronize(full));
  EXPECT_EQ(Mark(), 2000u);
}

}  // namespace
}  // namespace softgpu
