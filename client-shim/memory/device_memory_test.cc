// Where allocations lie is mempool's, and tested there. Here: which calls that takes, the table of
// allocations, and what is waited for.
#include "client-shim/memory/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using mempool::Freed;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeSession;
using ::testing::IsEmpty;
using testing::kGranularity;
using testing::kMiB;
using testing::kWindowBytes;
using testing::Record;

class DeviceMemoryTest : public testing::WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    memory_ = Make({});
  }

  // It stays: replies to its calls may still come.
  DeviceMemory* Make(std::vector<wire::LeasedChunk> leased) {
    wire::DeviceDescription description;
    window_ = description.window = FakeSession::NewWindow();
    description.leased = std::move(leased);
    return new DeviceMemory(TheSession(), 0, description, kGranularity);
  }
  uint64_t Allocate(uint64_t bytes, Stream* stream = nullptr) {
    uint64_t address = 0;
    EXPECT_EQ(memory_->Allocate(context_, bytes, &address, stream), CUDA_SUCCESS);
    return address;
  }
  bool Free(uint64_t address, std::vector<StreamPoint> points = {}, Freed freed = Freed::kForAll) {
    for (const StreamPoint& point : points) Retain(point.stream);
    return memory_->Free(address, std::move(points), freed);
  }
  // Allocates in another thread. True if that waits for the held stream, which is let go then.
  bool AllocationWaitsFor(Stream* stream, uint64_t bytes, Stream* in, uint64_t* address) {
    std::atomic<bool> done{false};
    const uint64_t waits = TheSession().counts().waits;
    std::thread thread([&] {
      EXPECT_EQ(memory_->Allocate(context_, bytes, address, in), CUDA_SUCCESS);
      done = true;
    });
    while (!done && TheSession().counts().waits == waits) std::this_thread::yield();
    const bool waited = !done;
    fake_.LetGo(stream);
    thread.join();
    return waited;
  }

  DeviceMemory* memory_ = nullptr;
  wire::Window window_;
};

TEST_F(DeviceMemoryTest, TheFirstAllocationLeasesAndMaps) {
  const uint64_t address = Allocate(100);
  std::vector<Record> records = fake_.Take();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0].As<calls::lwLease>().bytes, ElementsAre(64 * kMiB));
  auto map = records[1].As<calls::lwMap>();
  EXPECT_EQ(map.chunk.size(), 1u);
  EXPECT_EQ(map.address, window_.base);
  EXPECT_GE(address, map.address);
  EXPECT_LE(address + 100, map.address + 64 * kMiB);
}

TEST_F(DeviceMemoryTest, WhatFitsTheLeaseSendsNothing) {
  const uint64_t first = Allocate(1);
  fake_.Take();
  const uint64_t second = Allocate(513), third = Allocate(kMiB), fourth = Allocate(60 * kMiB);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  for (uint64_t address : {first, second, third, fourth}) EXPECT_EQ(address % 512, 0u);
  EXPECT_EQ(second, first + 512);
  std::vector<std::pair<uint64_t, uint64_t>> taken = {
      {first, 1}, {second, 513}, {third, kMiB}, {fourth, 60 * kMiB}};
  std::sort(taken.begin(), taken.end());
  for (size_t i = 1; i < taken.size(); ++i) {
    EXPECT_LE(taken[i - 1].first + taken[i - 1].second, taken[i].first);
  }
  Allocate(4 * kMiB);  // does not fit behind the others
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwLease", "lwMap"));
}

TEST_F(DeviceMemoryTest, MemoryThatCameWithTheSessionIsMappedAtTheFirstUse) {
  memory_ = Make({{77, 64 * kMiB}});
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  Allocate(kMiB);
  std::vector<Record> records = fake_.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].As<calls::lwMap>().chunk, ElementsAre(77));
  EXPECT_EQ(records[0].As<calls::lwMap>().address, window_.base);
  Allocate(kMiB);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(DeviceMemoryTest, NoLeasedChunkExceedsTheServersLargest) {
  Allocate(1152 * kMiB);
  std::vector<Record> records = fake_.Take();
  ASSERT_EQ(records.size(), 2u);
  auto lease = records[0].As<calls::lwLease>();
  EXPECT_THAT(lease.bytes, ElementsAre(512 * kMiB, 512 * kMiB, 128 * kMiB));
  EXPECT_EQ(records[1].As<calls::lwMap>().chunk.size(), 3u);
}

TEST_F(DeviceMemoryTest, FreedMemoryIsUsedAgainAtOnce) {
  const uint64_t small = Allocate(4096), block = Allocate(100 * kMiB);
  fake_.Take();
  EXPECT_TRUE(Free(small));
  EXPECT_TRUE(Free(block));
  EXPECT_EQ(Allocate(4096), small);
  EXPECT_EQ(Allocate(100 * kMiB), block);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(DeviceMemoryTest, MoreThanThereIsIsRefusedAndLessIsThere) {
  fake_.SetMemory(192 * kMiB);
  uint64_t address = 0;
  EXPECT_EQ(memory_->Allocate(context_, 256 * kMiB, &address), CUDA_ERROR_OUT_OF_MEMORY);
  Allocate(128 * kMiB);
  EXPECT_EQ(memory_->Allocate(context_, 65 * kMiB, &address), CUDA_ERROR_OUT_OF_MEMORY);
  Allocate(64 * kMiB);
  EXPECT_EQ(memory_->Allocate(context_, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(DeviceMemoryTest, AbsurdSizesAskNobody) {
  uint64_t address = 0;
  for (uint64_t bytes : {uint64_t{1} << 46, (uint64_t{1} << 46) + 1, UINT64_MAX}) {
    EXPECT_EQ(memory_->Allocate(context_, bytes, &address), CUDA_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  EXPECT_EQ(memory_->Allocate(context_, uint64_t{1} << 45, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(fake_.TakeNames(), Contains("lwLease"));
}

TEST_F(DeviceMemoryTest, ExhaustionWaitsForFreesThatRest) {
  Stream* stream = NewTestStream();
  NewTestStream(StreamKind::kNonBlocking);  // would not wait for the other one's work
  fake_.SetMemory(128 * kMiB);
  const uint64_t first = Allocate(128 * kMiB);
  fake_.Hold(stream);
  EXPECT_TRUE(Free(first, {{stream, Work(stream)}}));
  uint64_t again = 0;
  EXPECT_TRUE(AllocationWaitsFor(stream, 128 * kMiB, nullptr, &again));
  EXPECT_EQ(again, first);
}

// Later work of all streams comes behind the only stream's by itself.
TEST_F(DeviceMemoryTest, MemoryThatRestsForTheOnlyStreamIsUsedAtOnce) {
  Stream* stream = NewTestStream();
  const uint64_t first = Allocate(128 * kMiB);
  fake_.Hold(stream);
  const uint64_t position = Work(stream);
  EXPECT_TRUE(Free(first, {{stream, position}}));
  fake_.Take();
  EXPECT_EQ(Allocate(128 * kMiB), first);
  EXPECT_EQ(stream->reused.load(), position);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  fake_.LetGo(stream);
}

TEST_F(DeviceMemoryTest, AFreeInAStreamIsForThatStream) {
  Stream* stream = NewTestStream();
  Stream* other = NewTestStream();
  const uint64_t first = Allocate(128 * kMiB, stream);
  fake_.Hold(stream);
  EXPECT_TRUE(Free(first, {{stream, Work(stream)}}, Freed::kInStream));
  fake_.Take();
  EXPECT_EQ(Allocate(128 * kMiB, stream), first);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  EXPECT_TRUE(Free(first, {{stream, Work(stream)}}, Freed::kInStream));
  uint64_t again = 0;
  EXPECT_TRUE(AllocationWaitsFor(stream, 128 * kMiB, other, &again));
  EXPECT_EQ(again, first);
}

TEST_F(DeviceMemoryTest, AChangeIsReportedOnceIfThatWasAskedFor) {
  const uint64_t first = Allocate(kMiB);
  fake_.Take();
  bool watched = false;
  memory_->FreeInChunks(7, &watched);
  EXPECT_TRUE(watched);
  EXPECT_TRUE(Free(first));
  Allocate(kMiB);
  std::vector<uint64_t> reported;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (reported.empty() && std::chrono::steady_clock::now() < end) {
    for (const Record& record : fake_.Take()) {
      if (record.call != CallId::lwReclaimed) continue;
      reported.push_back(record.As<calls::lwReclaimed>().request);
    }
  }
  EXPECT_THAT(reported, ElementsAre(7));
  watched = false;
  memory_->FreeInChunks(0, &watched);
  EXPECT_FALSE(watched);
}

TEST_F(DeviceMemoryTest, WhatRestsIsNotWatched) {
  Stream* stream = NewTestStream();
  const uint64_t first = Allocate(kMiB, stream);
  fake_.Hold(stream);
  EXPECT_TRUE(Free(first, {{stream, Work(stream)}}, Freed::kInStream));
  bool watched = false;
  memory_->FreeInChunks(7, &watched);
  EXPECT_FALSE(watched) << "it becomes free without a call";
  fake_.LetGo(stream);
  memory_->FreeInChunks(7, &watched);
  EXPECT_TRUE(watched);
}

TEST_F(DeviceMemoryTest, SmallAllocationsLeaveAloneWhatRests) {
  Stream* stream = NewTestStream();
  Stream* other = NewTestStream();
  const uint64_t first = Allocate(kMiB, stream);
  fake_.Hold(stream);
  EXPECT_TRUE(Free(first, {{stream, Work(stream)}}, Freed::kInStream));
  EXPECT_NE(Allocate(kMiB, other), first);
  EXPECT_EQ(memory_->FreeLeased(), 63 * kMiB);  // what rests counts as free
  fake_.LetGo(stream);
  EXPECT_EQ(Allocate(kMiB, other), first);
}

TEST_F(DeviceMemoryTest, WhatIsNotAllocatedIsNotFreed) {
  Stream* stream = NewTestStream();
  const uint64_t address = Allocate(4096);
  const uint32_t references = stream->references;
  EXPECT_FALSE(Free(address + 1, {{stream, 1}}));
  EXPECT_FALSE(Free(window_.base - 1, {{stream, 1}}));
  EXPECT_EQ(stream->references, references);  // not kept for what was not freed
  EXPECT_TRUE(Free(address));
  EXPECT_FALSE(Free(address));
}

TEST_F(DeviceMemoryTest, AnAllocationIsFoundByEachOfItsBytes) {
  const uint64_t address = Allocate(1000);
  Allocation found;
  ASSERT_TRUE(memory_->Find(address, &found));
  EXPECT_EQ(found.address, address);
  EXPECT_EQ(found.bytes, 1000u);
  EXPECT_EQ(found.context, context_);
  EXPECT_TRUE(memory_->Find(address + 999, &found));
  EXPECT_FALSE(memory_->Find(address + 1000, &found));
  EXPECT_FALSE(memory_->Find(address - 1, &found));
  const uint64_t id = found.id;
  Free(address);
  EXPECT_FALSE(memory_->Find(address, &found));
  EXPECT_EQ(Allocate(1000), address);
  ASSERT_TRUE(memory_->Find(address, &found));
  EXPECT_NE(found.id, id);
}

TEST_F(DeviceMemoryTest, AContextTakesItsOwnAllocationsWithIt) {
  Context* other = nullptr;
  ASSERT_EQ(NewContext(0, 0, &other), CUDA_SUCCESS);
  const uint64_t own = Allocate(4096);
  uint64_t others = 0;
  ASSERT_EQ(memory_->Allocate(other, 4096, &others), CUDA_SUCCESS);
  memory_->FreeContext(other->number);
  Allocation found;
  EXPECT_TRUE(memory_->Find(own, &found));
  EXPECT_FALSE(memory_->Find(others, &found));
  EXPECT_EQ(Allocate(4096), others);
  EXPECT_EQ(EndContext(other), CUDA_SUCCESS);
}

TEST_F(DeviceMemoryTest, UnusedChunksAreGivenBackOnceUnmapped) {
  const uint64_t block = Allocate(128 * kMiB);
  Allocate(kMiB);
  Free(block);
  EXPECT_EQ(memory_->FreeInChunks(), 128 * kMiB);
  fake_.Take();
  const uint64_t leased = fake_.leased();
  EXPECT_EQ(memory_->GiveBackFree(0), 0u);
  EXPECT_EQ(memory_->GiveBackFree(1), 64 * kMiB);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwUnmap", "lwReturnChunks"));
  EXPECT_EQ(fake_.leased(), leased - 64 * kMiB);
  EXPECT_EQ(memory_->GiveBackFree(UINT64_MAX), 64 * kMiB);
  fake_.Take();
  EXPECT_EQ(fake_.leased(), leased - 128 * kMiB);
  EXPECT_EQ(memory_->FreeInChunks(), 0u);
}

// Its addresses are not used before the worker says that they are free.
TEST_F(DeviceMemoryTest, AddressesComeBackWithTheReplyToTheirUnmapping) {
  uint64_t address = 0, again = 0;
  ASSERT_TRUE(memory_->TakeAddresses(kWindowBytes - 128 * kMiB, 0, &address));
  const uint64_t block = Allocate(128 * kMiB);
  Free(block);
  fake_.OnCall<calls::lwUnmap>([](const Record&) { return std::nullopt; });
  fake_.Take();
  memory_->GiveBackFree(UINT64_MAX);
  std::vector<Record> unmaps = fake_.TakeOnly<calls::lwUnmap>();
  ASSERT_FALSE(unmaps.empty());
  uint64_t unmapped = 0;
  for (const Record& record : unmaps) unmapped += record.As<calls::lwUnmap>().bytes;
  EXPECT_EQ(unmapped, 128 * kMiB);
  std::atomic<bool> done{false};
  const uint64_t waits = TheSession().counts().waits;
  std::thread thread([&] {
    EXPECT_TRUE(memory_->TakeAddresses(128 * kMiB, 0, &again));
    done = true;
  });
  while (!done && TheSession().counts().waits == waits) std::this_thread::yield();
  EXPECT_FALSE(done);
  for (const Record& record : unmaps) fake_.SendReply(record.position, {});
  thread.join();
  EXPECT_EQ(again, block);
}

TEST_F(DeviceMemoryTest, APeerReachesWhatIsMappedAndWhatWillBe) {
  Allocate(kMiB);
  fake_.Take();
  memory_->SetPeerAccess(3, true);
  std::vector<Record> records = fake_.Take();
  ASSERT_EQ(records.size(), 1u);
  auto access = records[0].As<calls::lwSetAccess>();
  EXPECT_EQ(access.address, window_.base);
  EXPECT_EQ(access.bytes, 64 * kMiB);
  EXPECT_EQ(access.device, 3);
  EXPECT_TRUE(access.access);
  const uint64_t block = Allocate(128 * kMiB);
  records = fake_.TakeOnly<calls::lwSetAccess>();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].As<calls::lwSetAccess>().address, block);
  EXPECT_EQ(records[0].As<calls::lwSetAccess>().bytes, 128 * kMiB);
  memory_->SetPeerAccess(3, false);
  records = fake_.Take();
  ASSERT_EQ(records.size(), 2u);  // the arena and the block
  EXPECT_FALSE(records[1].As<calls::lwSetAccess>().access);
  Allocate(256 * kMiB);
  EXPECT_THAT(fake_.TakeOnly<calls::lwSetAccess>(), IsEmpty());
}

TEST_F(DeviceMemoryTest, AddressesForOtherUsesDoNotOverlap) {
  uint64_t first = 0, second = 0, hinted = 0;
  ASSERT_TRUE(memory_->TakeAddresses(64 * kMiB, 0, &first));
  ASSERT_TRUE(memory_->TakeAddresses(64 * kMiB, 0, &second));
  EXPECT_EQ(second, first + 64 * kMiB);
  ASSERT_TRUE(memory_->TakeAddresses(2 * kMiB, first + 512 * kMiB, &hinted));
  EXPECT_EQ(hinted, first + 512 * kMiB);
  ASSERT_TRUE(memory_->TakeAddresses(2 * kMiB, first, &hinted));
  EXPECT_NE(hinted, first);
  memory_->GiveAddresses(first, 64 * kMiB);
  ASSERT_TRUE(memory_->TakeAddresses(64 * kMiB, first, &hinted));
  EXPECT_EQ(hinted, first);
  EXPECT_FALSE(memory_->TakeAddresses(kWindowBytes, 0, &hinted));
}

}  // namespace
}  // namespace longwire::shim
