// Single calls, from the client's exported functions to the fake driver and back.
#include <array>
#include <cstring>
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

TEST(Calls, TheDeviceIsWhatTheWorkerDescribed) {
  Driver();
  EXPECT_OK(cuInit(0));
  int count = 0, value = 0;
  EXPECT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(1, count);
  char name[64];
  EXPECT_OK(cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ("Fake device", name);
  EXPECT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
  EXPECT_EQ(1024, value);
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): an attribute that no version has
  auto unknown = static_cast<CUdevice_attribute>(1000);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, unknown, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof(name), 1));
}

TEST(Calls, BytesGoThereAndBack) {
  Bench bench;
  // Inline, exactly the inline limit, in pieces, more than the ring and the upload window hold.
  for (size_t bytes : {size_t{4}, wire::kInlineCopyBytes, wire::kInlineCopyBytes + 4,
                       size_t{5} << 20, (size_t{40} << 20) + 12}) {
    std::vector<uint32_t> in(bytes / 4), out(bytes / 4);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i * 2654435761u);
    CUdeviceptr device = 0;
    ASSERT_OK(cuMemAlloc_v2(&device, bytes));
    EXPECT_EQ(0u, device % 512);
    ASSERT_OK(cuMemcpyHtoD_v2(device, in.data(), bytes));
    ASSERT_OK(cuMemcpyDtoH_v2(out.data(), device, bytes));
    EXPECT_EQ(in, out) << bytes;
    EXPECT_OK(cuMemFree_v2(device));
  }
}

TEST(Calls, LargeCopiesTakeTheLanes) {
  Bench bench;
  std::vector<uint32_t> in(5 << 18, 7), out(in.size());
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemAlloc_v2(&device, 5 << 20));
  uint64_t before = LogBytes();
  ASSERT_OK(cuMemcpyHtoD_v2(device, in.data(), 5 << 20));
  ASSERT_OK(cuMemcpyDtoH_v2(out.data(), device, 5 << 20));
  // The log has its part while the lanes wake up.
  EXPECT_LT(LogBytes() - before, wire::kLogAheadBytes + (64u << 10));
  EXPECT_EQ(in, out);
  EXPECT_OK(cuMemFree_v2(device));
}

// Each thread's copies take all lanes, beside the others'.
TEST(Calls, LargeCopiesOfSeveralThreads) {
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed] {
      Bench bench;
      CUstream stream = nullptr;
      ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (uint32_t round = 0; round < 4; ++round) {
        std::vector<uint32_t> in(300'001 * seed), out(in.size());
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i * seed + round);
        size_t bytes = in.size() * 4;
        CUdeviceptr device = 0;
        ASSERT_OK(cuMemAlloc_v2(&device, bytes));
        ASSERT_OK(cuMemcpyHtoDAsync_v2(device, in.data(), bytes, stream));
        bench.Add(stream, device, 1000, 1);
        ASSERT_OK(cuMemcpyDtoHAsync_v2(out.data(), device, bytes, stream));
        ASSERT_OK(cuStreamSynchronize(stream));
        for (size_t i = 0; i < 1000; ++i) in[i] += 1;
        EXPECT_EQ(in, out) << seed << " " << round;
        EXPECT_OK(cuMemFree_v2(device));
      }
      EXPECT_OK(cuStreamDestroy_v2(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Calls, RowsOfTwoDimensionalCopiesArePacked) {
  Bench bench;
  constexpr size_t kWidth = 100, kRows = 700, kHostPitch = 128;
  std::vector<unsigned char> in(kHostPitch * kRows), out(kHostPitch * kRows, 0xee);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7);
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemAlloc_v2(&device, kWidth * kRows));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = kHostPitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = kWidth;
  copy.WidthInBytes = kWidth;
  copy.Height = kRows;
  ASSERT_OK(cuMemcpy2D_v2(&copy));
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = device;
  back.srcPitch = kWidth;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out.data();
  back.dstPitch = kHostPitch;
  back.WidthInBytes = kWidth;
  back.Height = kRows;
  ASSERT_OK(cuMemcpy2D_v2(&back));
  for (size_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(0, std::memcmp(&in[row * kHostPitch], &out[row * kHostPitch], kWidth)) << row;
    ASSERT_EQ(0xee, out[row * kHostPitch + kWidth]) << "wrote behind row " << row;
  }
  EXPECT_OK(cuMemFree_v2(device));
}

TEST(Calls, WhatIsQueuedWaitsForNoReply) {
  Bench bench;
  CUdeviceptr data = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  void* pinned = nullptr;
  ASSERT_OK(cuMemHostAlloc(&pinned, 8192, 0));
  // The streams are not ordered among each other: what one reads, another must not write.
  void* results = static_cast<char*>(pinned) + 4096;
  ASSERT_OK(cuMemAlloc_v2(&data, 4096));
  uint64_t before = RoundTrips();
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuEventCreate(&event, 0));
    ASSERT_OK(cuMemsetD8Async(data, 0, 4096, stream));
    ASSERT_OK(cuMemcpyHtoDAsync_v2(data, pinned, 4096, stream));
    bench.Add(stream, data, 16, 1);
    ASSERT_OK(cuEventRecord(event, stream));
    ASSERT_OK(cuStreamWaitEvent(nullptr, event, 0));
    ASSERT_OK(cuMemcpyDtoHAsync_v2(results, data, 4096, stream));
    CUdeviceptr other = 0;
    ASSERT_OK(cuMemAlloc_v2(&other, 1 << 20));
    ASSERT_OK(cuMemFree_v2(other));
    ASSERT_OK(cuEventDestroy_v2(event));
    ASSERT_OK(cuStreamDestroy_v2(stream));
  }
  EXPECT_EQ(before, RoundTrips());
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemFree_v2(data));
  EXPECT_OK(cuMemFreeHost(pinned));
}

TEST(Calls, WhatTheDriverRefusesAtOnceIsRefusedAtOnce) {
  Bench bench;
  CUdeviceptr data = 0;
  uint32_t count = 1, add = 1;
  void* parameters[] = {&data, &count, &add};
  auto launch = [&](unsigned grid, unsigned block, unsigned shared, CUstream stream) {
    return cuLaunchKernel(bench.kernel, grid, 1, 1, block, 1, 1, shared, stream, parameters,
                          nullptr);
  };
  auto no_stream = reinterpret_cast<CUstream>(0x1234);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch(0, 32, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch(1, 2048, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch(1, 600, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, launch(1, 32, 50000, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, launch(1, 32, 0, no_stream));
  ASSERT_OK(cuMemAlloc_v2(&data, 1000));
  char host[2000] = {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(data, host, 1001));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(data + 900, host, 200));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, data, SIZE_MAX / 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(data + 2, 0, 1, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(data + 512));
  EXPECT_OK(cuMemFree_v2(data));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(data));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&data, uint64_t{1} << 40));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&data, UINT64_MAX));
}

TEST(Calls, MemoryIsUsedAgainAfterTheWorkBeforeTheFree) {
  Bench bench;
  // More than the first lease, more than half of the device: only one fits at a time.
  constexpr size_t kBytes = 150 << 20;
  CUdeviceptr data = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(cuMemAlloc_v2(&data, kBytes)) << round;
    bench.Add(nullptr, data + kBytes - 64, 16, 1);
    ASSERT_OK(cuMemFree_v2(data));
  }
  // Pieces that lie apart are put side by side.
  std::vector<CUdeviceptr> pieces(4);
  for (CUdeviceptr& piece : pieces) ASSERT_OK(cuMemAlloc_v2(&piece, 30 << 20));
  for (CUdeviceptr piece : pieces) ASSERT_OK(cuMemFree_v2(piece));
  ASSERT_OK(cuMemAlloc_v2(&data, 190 << 20));
  ASSERT_OK(cuMemFree_v2(data));
  size_t free = 0, total = 0;
  ASSERT_OK(cuMemGetInfo_v2(&free, &total));
  EXPECT_EQ(kDeviceBytes, total);
  EXPECT_GE(free, size_t{190} << 20);
}

TEST(Calls, AnotherThreadsFreedMemoryIsNotWrittenTooEarly) {
  Bench bench;
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr first = 0, second = 0;
  ASSERT_OK(cuMemAllocAsync(&first, 1 << 20, stream));
  ASSERT_OK(cuMemFreeAsync(first, stream));
  ASSERT_OK(cuMemAllocAsync(&second, 1 << 20, stream));
  EXPECT_EQ(first, second) << "the same stream may use it at once";
  ASSERT_OK(cuMemFreeAsync(second, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  ASSERT_OK(cuStreamDestroy_v2(stream));
}

TEST(Calls, PointersAreKnown) {
  Bench bench;
  CUdeviceptr data = 0, start = 0;
  size_t bytes = 0;
  ASSERT_OK(cuMemAlloc_v2(&data, 5000));
  EXPECT_OK(cuMemGetAddressRange_v2(&start, &bytes, data + 4999));
  EXPECT_EQ(data, start);
  EXPECT_EQ(5000u, bytes);
  unsigned type = 0;
  EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data + 1));
  EXPECT_EQ(static_cast<unsigned>(CU_MEMORYTYPE_DEVICE), type);
  int on_stack = 0;
  auto pageable = reinterpret_cast<CUdeviceptr>(&on_stack);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pageable));
  // A copy of unstated direction finds out by itself.
  int in = 42, out = 0;
  EXPECT_OK(cuMemcpy(data, reinterpret_cast<CUdeviceptr>(&in), sizeof(in)));
  EXPECT_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(&out), data, sizeof(out)));
  EXPECT_EQ(42, out);
  EXPECT_OK(cuMemFree_v2(data));
}

TEST(Calls, PointersKnowTheirPool) {
  Bench bench;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool own = nullptr, told = nullptr;
  CUdeviceptr pooled = 0, plain = 0;
  ASSERT_OK(cuMemPoolCreate(&own, &properties));
  ASSERT_OK(cuMemAllocFromPoolAsync(&pooled, 64, own, nullptr));
  ASSERT_OK(cuMemAlloc_v2(&plain, 64));
  EXPECT_OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled + 8));
  EXPECT_EQ(own, told);
  EXPECT_OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain));
  EXPECT_EQ(nullptr, told);
  unsigned long long types = 0, block = 0, other_block = 0;
  EXPECT_OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, pooled));
  EXPECT_EQ(1ull * CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, types);
  EXPECT_OK(cuPointerGetAttribute(&block, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, pooled));
  EXPECT_OK(cuPointerGetAttribute(&other_block, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, plain));
  EXPECT_NE(block, other_block);
  bool decompresses[2] = {true, true};  // one byte is written
  EXPECT_OK(
      cuPointerGetAttribute(decompresses, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, plain));
  EXPECT_FALSE(decompresses[0]);
  EXPECT_TRUE(decompresses[1]);
  EXPECT_OK(cuMemFreeAsync(pooled, nullptr));
  EXPECT_OK(cuMemFree_v2(plain));
  EXPECT_OK(cuMemPoolDestroy(own));
}

uint64_t PoolCount(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  EXPECT_OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

TEST(Calls, PoolsHaveALimitAndKeepWhatTheyAreTold) {
  constexpr size_t kPiece = 32 << 20;
  Bench bench;
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  properties.maxSize = 1000;  // counts as a whole piece
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  CUdeviceptr small = 0, large = 1;
  ASSERT_OK(cuMemAllocFromPoolAsync(&small, 4096, pool, nullptr));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&large, kPiece, pool, nullptr));
  EXPECT_EQ(0u, large);
  EXPECT_EQ(4096u, PoolCount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(4096u, PoolCount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  EXPECT_EQ(kPiece, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  cuuint64_t all = ~0ull, zero = 0;
  ASSERT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  ASSERT_OK(cuMemFreeAsync(small, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(0u, PoolCount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(kPiece, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_OK(cuMemPoolTrimTo(pool, 1000));
  EXPECT_EQ(kPiece, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_OK(cuMemPoolTrimTo(pool, 0));
  EXPECT_EQ(0u, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(kPiece, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  EXPECT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  EXPECT_EQ(0u, PoolCount(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  EXPECT_EQ(4096u, PoolCount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  ASSERT_OK(cuMemAllocFromPoolAsync(&large, kPiece, pool, nullptr));
  EXPECT_OK(cuMemFreeAsync(large, nullptr));
  EXPECT_OK(cuMemPoolDestroy(pool));
}

TEST(Calls, MemoryIsFreedWithoutAContext) {
  Bench bench;
  CUdeviceptr data = 0, managed = 0, start = 0;
  ASSERT_OK(cuMemAlloc_v2(&data, 64));
  ASSERT_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  void* pinned = nullptr;
  std::vector<char> registered(64);
  ASSERT_OK(cuMemHostAlloc(&pinned, 64, 0));
  ASSERT_OK(cuMemHostRegister_v2(registered.data(), registered.size(), 0));
  std::thread([&] {
    EXPECT_OK(cuMemFreeHost(pinned));
    EXPECT_OK(cuMemHostUnregister(registered.data()));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(registered.data()));
    EXPECT_OK(cuMemFree_v2(data));
    EXPECT_OK(cuMemFree_v2(managed));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(data));
    EXPECT_OK(cuMemFree_v2(0));
  }).join();
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&start, nullptr, managed));
}

#ifndef __SANITIZE_THREAD__  // here both ends have one memory: one compares what the other fills
TEST(Calls, AStreamsWorkNeedsNoCurrentContext) {
  Bench bench;
  CUstream stream = nullptr;
  CUdeviceptr data = 0;
  std::array<unsigned char*, 2> pinned = {};
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuMemAlloc_v2(&data, 64));
  for (auto& one : pinned) ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&one), 64, 0));
  auto first = reinterpret_cast<CUdeviceptr>(pinned[0]);
  std::thread([&] {
    EXPECT_OK(cuMemsetD8Async(first, 5, 64, stream));  // the device is to see it from now on
    EXPECT_OK(cuMemcpyAsync(data, first, 64, stream));
    EXPECT_OK(cuMemcpyDtoHAsync_v2(pinned[1], data, 64, stream));
    EXPECT_OK(cuStreamSynchronize(stream));
  }).join();
  EXPECT_EQ(5, pinned[0][63]);
  EXPECT_EQ(5, pinned[1][63]);
  EXPECT_OK(cuMemFree_v2(data));
  for (auto* one : pinned) EXPECT_OK(cuMemFreeHost(one));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}
#endif

TEST(Calls, ContextsAreAStackPerThread) {
  Bench bench;
  CUcontext own = nullptr, current = nullptr;
  ASSERT_OK(cuCtxCreate_v2(&own, 0, 0));
  EXPECT_OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(own, current);
  EXPECT_OK(cuCtxPushCurrent_v2(bench.context));
  std::thread([] {
    CUcontext none = reinterpret_cast<CUcontext>(1);
    EXPECT_OK(cuCtxGetCurrent(&none));
    EXPECT_EQ(nullptr, none);
    CUdeviceptr data = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&data, 16));
  }).join();
  EXPECT_OK(cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(bench.context, current);
  unsigned long long one = 0, other = 0;
  EXPECT_OK(cuCtxGetId(own, &one));
  EXPECT_OK(cuCtxGetId(bench.context, &other));
  EXPECT_NE(one, other);
  EXPECT_OK(cuCtxDestroy_v2(own));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(own));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(bench.context));
  EXPECT_OK(cuCtxSetCurrent(bench.context));
}

}  // namespace
}  // namespace longwire::joined
