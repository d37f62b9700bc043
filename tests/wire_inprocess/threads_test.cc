// Many threads on one session.
#include <atomic>
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

template <class Body>
void InThreads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([=] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, EachWithItsOwnStreamComputesItsOwnNumbers) {
  Bench warm;
  InThreads(8, [](int index) {
    Bench bench;
    constexpr uint32_t kCount = 3000;
    CUstream stream = nullptr;
    CUdeviceptr data = 0;
    uint32_t* host = nullptr;
    ASSERT_OK(cuStreamCreate(&stream, index % 2 == 0 ? CU_STREAM_NON_BLOCKING : 0));
    ASSERT_OK(cuMemAlloc_v2(&data, kCount * 4));
    ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&host), kCount * 4, 0));
    for (uint32_t round = 0; round < 25; ++round) {
      for (uint32_t i = 0; i < kCount; ++i) host[i] = i * 31 + index;
      ASSERT_OK(cuMemcpyHtoDAsync_v2(data, host, kCount * 4, stream));
      for (uint32_t step = 0; step < 10; ++step) bench.Add(stream, data, kCount, round);
      ASSERT_OK(cuMemcpyDtoHAsync_v2(host, data, kCount * 4, stream));
      ASSERT_OK(cuStreamSynchronize(stream));
      for (uint32_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(i * 31 + index + 10 * round, host[i]) << "thread " << index;
      }
    }
    EXPECT_OK(cuMemFreeHost(host));
    EXPECT_OK(cuMemFree_v2(data));
    EXPECT_OK(cuStreamDestroy_v2(stream));
  });
}

TEST(Threads, AnEventSeenByAnotherThreadIsTheNewestRecord) {
  Bench bench;
  CUdeviceptr data = 0;
  CUstream recording = nullptr, waiting = nullptr;
  CUevent event = nullptr;
  ASSERT_OK(cuMemAlloc_v2(&data, 4));
  ASSERT_OK(cuMemsetD8Async(data, 0, 4, nullptr));
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuStreamCreate(&recording, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  constexpr uint32_t kRounds = 60;
  std::atomic<uint32_t> recorded{0}, seen{0};
  std::thread other([&] {
    Bench own;
    for (uint32_t round = 1; round <= kRounds; ++round) {
      own.Add(recording, data, 1, 1);
      EXPECT_OK(cuEventRecord(event, recording));
      recorded = round;
      while (seen < round) std::this_thread::yield();
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    while (recorded < round) std::this_thread::yield();
    uint32_t value = 0;
    if (round % 3 == 0) {
      EXPECT_OK(cuEventSynchronize(event));
    } else if (round % 3 == 1) {
      EXPECT_OK(cuStreamWaitEvent(waiting, event, 0));
    } else {
      while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
    }
    EXPECT_OK(cuMemcpyDtoHAsync_v2(&value, data, 4, waiting));
    EXPECT_EQ(round, value);
    seen = round;
  }
  other.join();
  EXPECT_OK(cuEventDestroy_v2(event));
  EXPECT_OK(cuStreamDestroy_v2(recording));
  EXPECT_OK(cuStreamDestroy_v2(waiting));
  EXPECT_OK(cuMemFree_v2(data));
}

TEST(Threads, MemoryOfOneIsNeverAnothers) {
  Bench warm;
  InThreads(6, [](int index) {
    Bench bench;
    for (uint32_t round = 0; round < 40; ++round) {
      size_t bytes = 512 + (round * 7919 + index * 104729) % 700000;
      CUdeviceptr data = 0;
      ASSERT_OK(cuMemAlloc_v2(&data, bytes));
      unsigned char mark = static_cast<unsigned char>(index * 40 + round);
      ASSERT_OK(cuMemsetD8Async(data, mark, bytes, CU_STREAM_PER_THREAD));
      unsigned char ends[2] = {};
      ASSERT_OK(cuMemcpyDtoHAsync_v2(&ends[0], data, 1, CU_STREAM_PER_THREAD));
      ASSERT_OK(cuMemcpyDtoHAsync_v2(&ends[1], data + bytes - 1, 1, CU_STREAM_PER_THREAD));
      ASSERT_EQ(mark, ends[0]);
      ASSERT_EQ(mark, ends[1]);
      ASSERT_OK(cuMemFree_v2(data));
    }
  });
}

struct Written {
  std::atomic<uint32_t> runs{0};
  uint32_t value = 0;
  uint32_t seen = 0;
};

void CUDA_CB ReadAndChange(void* data) {
  auto* written = static_cast<Written*>(data);
  written->seen = written->value;  // what the copy before has brought
  written->value = 1000 + written->runs++;
  CUdeviceptr none = 0;
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, cuMemAlloc_v2(&none, 16));
}

TEST(Threads, HostFunctionsRunBetweenTheCopiesAroundThem) {
  Bench warm;
  InThreads(4, [](int index) {
    Bench bench;
    CUstream stream = nullptr;
    CUdeviceptr data = 0;
    Written* host = nullptr;
    ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&host), sizeof(Written), 0));
    new (host) Written;
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuMemAlloc_v2(&data, 4));
    ASSERT_OK(cuMemsetD8Async(data, 0, 4, stream));
    for (uint32_t round = 0; round < 15; ++round) {
      bench.Add(stream, data, 1, 5);
      ASSERT_OK(cuMemcpyDtoHAsync_v2(&host->value, data, 4, stream));
      ASSERT_OK(cuLaunchHostFunc(stream, ReadAndChange, host));
      // Its source is changed by the function before: it must not be read now.
      ASSERT_OK(cuMemcpyHtoDAsync_v2(data, &host->value, 4, stream));
      ASSERT_OK(cuStreamSynchronize(stream));
      ASSERT_EQ(round + 1, host->runs.load());
      ASSERT_EQ(round == 0 ? 5u : 1000 + round - 1 + 5, host->seen) << "thread " << index;
    }
    uint32_t last = 0;
    ASSERT_OK(cuMemcpyDtoHAsync_v2(&last, data, 4, stream));
    EXPECT_EQ(1014u, last);
    EXPECT_OK(cuStreamDestroy_v2(stream));
    EXPECT_OK(cuMemFree_v2(data));
    EXPECT_OK(cuMemFreeHost(host));
  });
}

TEST(Threads, ThreadsComeAndGoWithTheirDefaultStreams) {
  Bench warm;
  CUdeviceptr data = 0;
  ASSERT_OK(cuMemAlloc_v2(&data, 64 * 4));
  ASSERT_OK(cuMemsetD8Async(data, 0, 64 * 4, nullptr));
  ASSERT_OK(cuCtxSynchronize());
  for (int generation = 0; generation < 8; ++generation) {
    InThreads(8, [=](int index) {
      Bench bench;
      for (int i = 0; i < 5; ++i) bench.Add(CU_STREAM_PER_THREAD, data + index * 4, 1, 1);
    });
  }
  ASSERT_OK(cuCtxSynchronize());  // also for the streams of threads that are gone
  uint32_t counts[8] = {};
  ASSERT_OK(cuMemcpyDtoH_v2(counts, data, sizeof(counts)));
  for (uint32_t count : counts) EXPECT_EQ(40u, count);
  EXPECT_OK(cuMemFree_v2(data));
}

TEST(Threads, TheLegacyStreamIsMadeOnce) {
  Bench bench;
  for (int round = 0; round < 50; ++round) {
    CUcontext context = nullptr;
    CUdeviceptr data = 0;
    ASSERT_OK(cuCtxCreate_v2(&context, 0, 0));
    ASSERT_OK(cuMemAlloc_v2(&data, 4 * 4));
    std::atomic<int> there{0};
    InThreads(4, [=, &there](int index) {
      ASSERT_OK(cuCtxSetCurrent(context));
      there += 1;
      while (there < 4) {
      }
      ASSERT_OK(cuMemsetD8Async(data + index * 4, 7, 4, nullptr));
      ASSERT_OK(cuStreamSynchronize(nullptr));
    });
    uint32_t values[4] = {};
    ASSERT_OK(cuMemcpyDtoH_v2(values, data, sizeof(values)));
    for (uint32_t value : values) EXPECT_EQ(0x07070707u, value);
    ASSERT_OK(cuCtxDestroy_v2(context));
  }
}

}  // namespace
}  // namespace longwire::joined
