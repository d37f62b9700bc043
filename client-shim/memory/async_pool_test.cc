#include "client-shim/memory/async_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client-shim/memory/device_memory.h"
#include "client-shim/stream/captured_graph.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kMiB;
using testing::Record;
using testing::Reply;

constexpr PoolPlace kPlace{PoolKind::kDevice, 0};

class AsyncPoolTest : public testing::WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    pool_ = MakePool(0);
    stream_ = NewTestStream();
  }
  void TearDown() override {
    WithContext::TearDown();
    DestroyPool(pool_->handle);  // a test may have done so
  }

  Pool* MakePool(uint64_t limit) {
    CUmemoryPool handle = nullptr;
    EXPECT_EQ(CreatePool(kPlace, false, limit, &handle), CUDA_SUCCESS);
    return FindPool(handle);
  }
  uint64_t Allocate(uint64_t bytes, Stream* stream = nullptr) {
    if (stream == nullptr) stream = stream_;
    uint64_t address = 0;
    EXPECT_EQ(AllocateInStream(pool_, bytes, stream->handle, &address), CUDA_SUCCESS);
    return address;
  }
  void Free(uint64_t address) { EXPECT_EQ(FreeInStream(address, stream_->handle), CUDA_SUCCESS); }
  uint64_t Value(CUmemPool_attribute attribute) {
    cuuint64_t value = UINT64_MAX;
    EXPECT_EQ(GetPoolAttribute(pool_->handle, attribute, &value), CUDA_SUCCESS);
    return value;
  }
  void Set(CUmemPool_attribute attribute, cuuint64_t value) {
    EXPECT_EQ(SetPoolAttribute(pool_->handle, attribute, &value), CUDA_SUCCESS);
  }
  uint64_t used() { return Value(CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }
  uint64_t reserved() { return Value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

  Pool* pool_ = nullptr;
  Stream* stream_ = nullptr;
};

TEST_F(AsyncPoolTest, WhatAStreamFreedItUsesAgainWhileItsWorkRuns) {
  const uint64_t first = Allocate(3 * kMiB);
  fake_.Hold(stream_);
  Work(stream_);
  Free(first);
  Stream* other = NewTestStream();
  EXPECT_NE(Allocate(3 * kMiB, other), first);
  fake_.Take();
  EXPECT_EQ(Allocate(3 * kMiB), first);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  fake_.LetGo(stream_);
}

TEST_F(AsyncPoolTest, OfSeveralTheOneOfTheSameSizeIsUsedAgain) {
  const uint64_t small = Allocate(kMiB), large = Allocate(2 * kMiB), last = Allocate(kMiB);
  fake_.Hold(stream_);
  Work(stream_);
  for (uint64_t address : {small, large, last}) Free(address);
  EXPECT_EQ(Allocate(2 * kMiB), large);
  const uint64_t first = Allocate(kMiB), second = Allocate(kMiB);
  EXPECT_THAT((std::set{first, second}), (std::set{small, last}));
  fake_.LetGo(stream_);
}

TEST_F(AsyncPoolTest, UsedBytesAreThoseAskedForAndReservedOnesWholePieces) {
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(reserved(), 0u);
  const uint64_t first = Allocate(1000);
  EXPECT_EQ(used(), 1000u);
  EXPECT_EQ(reserved(), 32 * kMiB);
  const uint64_t second = Allocate(32 * kMiB - 1000);
  EXPECT_EQ(used(), 32 * kMiB);
  EXPECT_EQ(reserved(), 32 * kMiB);
  const uint64_t third = Allocate(1);
  EXPECT_EQ(reserved(), 64 * kMiB);
  Free(second);
  EXPECT_EQ(used(), 1001u);
  EXPECT_EQ(reserved(), 32 * kMiB);
  Free(first);
  Free(third);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(Value(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 32 * kMiB + 1);
  EXPECT_EQ(Value(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 64 * kMiB);
  Set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
  Set(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
  EXPECT_EQ(Value(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
  EXPECT_EQ(Value(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0u);
}

TEST_F(AsyncPoolTest, TheThresholdStaysReservedAndTrimmingReleasesIt) {
  Set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 64 * kMiB);
  const uint64_t first = Allocate(90 * kMiB);
  EXPECT_EQ(reserved(), 96 * kMiB);
  Free(first);
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(TrimPool(pool_->handle, 64 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(TrimPool(pool_->handle, 32 * kMiB + 1), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 64 * kMiB);  // whole pieces
  EXPECT_EQ(TrimPool(pool_->handle, 32 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 32 * kMiB);
  const uint64_t second = Allocate(1);
  EXPECT_EQ(TrimPool(pool_->handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 32 * kMiB);  // in use
  Free(second);
  EXPECT_EQ(TrimPool(pool_->handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(AsyncPoolTest, ALimitIsExactAndCountsWholePieces) {
  Pool* limited = MakePool(33 * kMiB);
  uint64_t first = 0, second = 0;
  const auto allocate = [&](uint64_t bytes, uint64_t* address) {
    return AllocateInStream(limited, bytes, stream_->handle, address);
  };
  EXPECT_EQ(allocate(64 * kMiB + 1, &first), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(limited->used, 0u);
  EXPECT_EQ(allocate(63 * kMiB, &first), CUDA_SUCCESS);
  EXPECT_EQ(allocate(kMiB + 1, &second), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(UINT64_MAX, &second), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(kMiB, &second), CUDA_SUCCESS);
  EXPECT_EQ(limited->used, 64 * kMiB);
  Free(first);
  EXPECT_EQ(allocate(63 * kMiB, &first), CUDA_SUCCESS);
  Free(first);
  Free(second);
  EXPECT_EQ(DestroyPool(limited->handle), CUDA_SUCCESS);
}

TEST_F(AsyncPoolTest, WhatTheDeviceLacksIsNotCounted) {
  fake_.SetMemory(0);
  uint64_t address = 0;
  EXPECT_EQ(AllocateInStream(pool_, 2048 * kMiB, stream_->handle, &address),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(Value(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
}

TEST_F(AsyncPoolTest, NothingIsAllocatedAndNothingIsFreed) {
  uint64_t address = 1;
  EXPECT_EQ(AllocateInStream(pool_, 0, stream_->handle, &address), CUDA_SUCCESS);
  EXPECT_EQ(address, 0u);
  EXPECT_EQ(FreeInStream(0, stream_->handle), CUDA_SUCCESS);
  address = Allocate(4096);
  EXPECT_EQ(FreeInStream(address + 512, stream_->handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(used(), 4096u);
  Free(address);
  EXPECT_EQ(FreeInStream(address, stream_->handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(used(), 0u);
}

TEST_F(AsyncPoolTest, AllocationsOutliveTheirPool) {
  const uint64_t address = Allocate(4096);
  EXPECT_EQ(PoolOf(address), pool_);
  EXPECT_EQ(PoolOf(address + 1), nullptr);
  EXPECT_EQ(DestroyPool(pool_->handle), CUDA_SUCCESS);
  EXPECT_EQ(FindPool(pool_->handle), nullptr);
  EXPECT_EQ(DestroyPool(pool_->handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(pool_->used, 4096u);
  Free(address);
  EXPECT_EQ(pool_->used, 0u);
  EXPECT_EQ(PoolOf(address), nullptr);
}

TEST_F(AsyncPoolTest, ADestroyedCurrentPoolGivesWayToTheDefault) {
  CUmemoryPool standard = nullptr, current = nullptr;
  ASSERT_EQ(DevicePool(0, true, &standard), CUDA_SUCCESS);
  ASSERT_EQ(DevicePool(0, false, &current), CUDA_SUCCESS);
  EXPECT_EQ(current, standard);
  EXPECT_EQ(SetDevicePool(0, pool_->handle), CUDA_SUCCESS);
  ASSERT_EQ(DevicePool(0, false, &current), CUDA_SUCCESS);
  EXPECT_EQ(current, pool_->handle);
  uint64_t address = 0;
  EXPECT_EQ(AllocateInStream(nullptr, 100, stream_->handle, &address), CUDA_SUCCESS);
  EXPECT_EQ(PoolOf(address), pool_);
  Free(address);
  EXPECT_EQ(DestroyPool(standard), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(DestroyPool(pool_->handle), CUDA_SUCCESS);
  ASSERT_EQ(DevicePool(0, false, &current), CUDA_SUCCESS);
  EXPECT_EQ(current, standard);
}

TEST_F(AsyncPoolTest, APoolIsCurrentWhereItsMemoryLies) {
  EXPECT_EQ(SetPoolAt({PoolKind::kManaged, 0}, pool_->handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(SetPoolAt({PoolKind::kDevice, 1}, pool_->handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(SetDevicePool(1, pool_->handle), CUDA_ERROR_INVALID_VALUE);
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(DevicePool(1, true, &pool), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(DevicePool(1, false, &pool), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(AsyncPoolTest, ACapturedAllocationIsTheGraphs) {
  ASSERT_EQ(BeginCapture(stream_, CaptureMode::kRelaxed, nullptr, {}), CUDA_SUCCESS);
  fake_.OnCall<calls::lwAllocAsync>([](const Record& record) {
    EXPECT_EQ(record.As<calls::lwAllocAsync>().bytes, 4096u);
    calls::lwAllocAsync::Reply reply;
    reply.address = 0x700000;
    return Reply::With(reply);
  });
  fake_.Take();
  EXPECT_EQ(Allocate(4096), 0x700000u);
  EXPECT_EQ(used(), 0u);
  Free(0x700000);
  std::vector<Record> records = fake_.Take();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].header.flags, wire::kCapturing);
  EXPECT_EQ(records[1].As<calls::lwFreeAsync>().address, 0x700000u);
  EXPECT_EQ(records[1].header.flags, wire::kCapturing);
  // Not with memory from outside the graph.
  EXPECT_EQ(FreeInStream(0x800000, stream_->handle), CUDA_ERROR_INVALID_VALUE);
  CUgraph graph = nullptr;
  EXPECT_EQ(EndCapture(stream_, &graph), CUDA_SUCCESS);
}

TEST_F(AsyncPoolTest, AContextsEndFreesItsAllocations) {
  Allocate(4096);
  EXPECT_EQ(used(), 4096u);
  Context* other = nullptr;
  ASSERT_EQ(NewContext(0, 0, &other), CUDA_SUCCESS);
  EXPECT_EQ(EndContext(other), CUDA_SUCCESS);
  EXPECT_EQ(used(), 4096u);
  EXPECT_EQ(EndContext(context_), CUDA_SUCCESS);
  EXPECT_EQ(used(), 0u);
}

}  // namespace
}  // namespace longwire::shim
