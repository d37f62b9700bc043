// A copy whose source is freed next becomes a mapping. Before any other work the copy is made after
// all, where the program made it.
#include "client-shim/copy/remap_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client-shim/memory/device_memory.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::kMiB;
using ::testing::Not;
using testing::Record;

constexpr uint64_t kOld = 64 * kMiB, kNew = 96 * kMiB;

class RemapCopiesTest : public testing::WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    stream_ = NewTestStream();
    old_ = Allocate(kOld);
    new_ = Allocate(kNew);
    fake_.Take();
  }
  void TearDown() override {
    TheSession().AppendDeferred();
    for (uint64_t address : {old_, new_}) {
      MemoryOf(0)->Free(address, {}, mempool::Freed::kForAll);  // a test may have done so
    }
    WithContext::TearDown();
  }
  uint64_t Allocate(uint64_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(MemoryOf(0)->Allocate(context_, bytes, &address), CUDA_SUCCESS);
    return address;
  }
  static calls::Place At(uint64_t address) {
    calls::Place place{};
    place.address = address;
    place.rows = place.slices = 1;
    return place;
  }
  bool Defer(uint64_t to, uint64_t from, uint64_t bytes, uint16_t flags = 0) {
    calls::lwCopyDevice copy;
    copy.destination = At(to);
    copy.source = At(from);
    copy.bytes = bytes;
    return DeferCopy(stream_, {stream_->context_number, stream_, flags}, copy);
  }
  bool DeferAll() { return Defer(new_, old_, kOld); }
  uint64_t remaps() { return TheSession().counts().remaps; }

  Stream* stream_ = nullptr;
  uint64_t old_ = 0, new_ = 0;
};

TEST_F(RemapCopiesTest, TheFreeBehindItMapsInsteadOfCopying) {
  ASSERT_TRUE(DeferAll());
  EXPECT_THAT(fake_.TakeNames(), Not(Contains("lwCopyDevice")));
  const uint64_t before = remaps();
  EXPECT_TRUE(FreeAfterCopy(old_, nullptr));
  std::vector<Record> maps = fake_.TakeOnly<calls::lwRemap>();
  ASSERT_EQ(maps.size(), 1u);
  auto remap = maps[0].As<calls::lwRemap>();
  EXPECT_EQ(remap.address, new_);
  EXPECT_EQ(remap.moved, kOld);
  EXPECT_EQ(remaps(), before + 1);
  // There is nothing left to free, and nothing left to copy.
  EXPECT_FALSE(MemoryOf(0)->Free(old_, {}, mempool::Freed::kForAll));
  TheSession().AppendDeferred();
  EXPECT_THAT(fake_.TakeNames(), Not(Contains("lwCopyDevice")));
}

TEST_F(RemapCopiesTest, WorkInBetweenComesAfterTheCopy) {
  ASSERT_TRUE(DeferAll());
  Work(stream_);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwCopyDevice", "lwMemset"));
  EXPECT_FALSE(FreeAfterCopy(old_, nullptr));
}

TEST_F(RemapCopiesTest, TheFreeOfTheTargetMakesTheCopy) {
  ASSERT_TRUE(DeferAll());
  EXPECT_FALSE(FreeAfterCopy(new_, nullptr));
  EXPECT_THAT(fake_.TakeNames(), Contains("lwCopyDevice"));
}

TEST_F(RemapCopiesTest, TheFreeOfOtherMemoryLeavesItDeferred) {
  ASSERT_TRUE(DeferAll());
  EXPECT_FALSE(FreeAfterCopy(0x1000, nullptr));
  EXPECT_THAT(fake_.TakeNames(), Not(Contains("lwCopyDevice")));
  EXPECT_TRUE(FreeAfterCopy(old_, nullptr));
}

TEST_F(RemapCopiesTest, AFreeInAnotherStreamMakesTheCopy) {
  ASSERT_TRUE(DeferAll());
  EXPECT_FALSE(FreeAfterCopy(old_, NewTestStream()));
  fake_.Take();
  EXPECT_FALSE(FreeAfterCopy(old_, stream_)) << "it is still deferred";
}

// Other memory may not be mapped where unfinished work writes.
TEST_F(RemapCopiesTest, AFreeInTheStreamDoesNotWaitForEarlierWork) {
  fake_.Hold(stream_);
  Work(stream_);
  ASSERT_TRUE(DeferAll());
  EXPECT_FALSE(FreeAfterCopy(old_, stream_));
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwMemset", "lwCopyDevice"));
  fake_.LetGo(stream_);
}

TEST_F(RemapCopiesTest, WhatIsNoGrowthIsCopiedAtOnce) {
  EXPECT_FALSE(Defer(new_, old_, kOld - 512)) << "not all of it";
  EXPECT_FALSE(Defer(new_ + 512, old_, kOld)) << "not to the start";
  EXPECT_FALSE(Defer(old_, new_, kOld)) << "to a smaller one";
  EXPECT_FALSE(Defer(new_, old_, kOld, wire::kCapturing)) << "into a graph";
  calls::lwCopyDevice rows;
  rows.destination = At(new_);
  rows.source = At(old_);
  rows.source.rows = 2;
  rows.bytes = kOld;
  EXPECT_FALSE(DeferCopy(stream_, {stream_->context_number, stream_, 0}, rows)) << "of rows";
}

// It may still write into the old memory after the copy has read it.
TEST_F(RemapCopiesTest, WorkOfAStreamThatNothingOrdersForbidsIt) {
  Stream* other = NewTestStream(StreamKind::kNonBlocking);
  fake_.Hold(other);
  Work(other);
  EXPECT_FALSE(DeferAll());
  fake_.LetGo(other);
  EXPECT_TRUE(DeferAll());
}

TEST_F(RemapCopiesTest, ATargetIsFilledSoOnce) {
  ASSERT_TRUE(DeferAll());
  TheSession().AppendDeferred();
  EXPECT_FALSE(DeferAll());
}

}  // namespace
}  // namespace longwire::shim
