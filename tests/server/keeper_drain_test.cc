// A lease that lacks memory, and sessions that keep some free: workers who answer, who do not, and
// who have nothing.
#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

class KeeperDrainTest : public KeeperTest {
 protected:
  // What the keeper asks the worker.
  static Reclaim Asked(const wire::Descriptor& worker, milliseconds patience = milliseconds(5000)) {
    Reclaim reclaim;
    auto packet = wire::ReceiveMessage(worker.get(), patience);
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk);
    return reclaim;
  }

  static void GiveBack(const wire::Descriptor& worker, const Reclaim& asked,
                       const std::vector<GrantedChunk>& chunks, uint64_t idle = 0) {
    uint64_t bytes = 0;
    Return give_back;
    for (const GrantedChunk& chunk : chunks) {
      give_back.chunks.push_back(chunk.chunk);
      bytes += chunk.bytes;
    }
    if (!chunks.empty()) Say(worker, give_back);
    Say(worker, Reclaimed{asked.request, bytes, idle});
  }

  static uint64_t Free(const wire::Descriptor& worker) {
    Info info;
    auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &info) == wire::WireResult::kOk);
    return info.free;
  }
};

TEST_F(KeeperDrainTest, WhatAnotherSessionKeepsFreeIsGrantedCleared) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  Answer has = Ask(idle, {400 * kMiB, 400 * kMiB});
  EXPECT_EQ(pwrite(has.files[0].get(), "S", 1, 0), 1);
  Say(wants, Lease{7, {500 * kMiB}});
  Reclaim asked = Asked(idle);
  EXPECT_EQ(asked.bytes, 340 * kMiB);
  EXPECT_FALSE(asked.unused);
  GiveBack(idle, asked, {has.chunks[0]});
  Answer granted = Hear(wants);
  ASSERT_EQ(granted.chunks.size(), 1u);
  EXPECT_EQ(Content(granted.files[0]), 0);
  KeeperState state =
      State([](const KeeperState& s) { return s.leased == 900 * kMiB && s.drained != 0; });
  EXPECT_EQ(state.drained, 400 * kMiB);
  EXPECT_EQ(state.leased, 900 * kMiB);
  EXPECT_EQ(state.refused, 0u);
}

TEST_F(KeeperDrainTest, NobodyIsAskedForWhatIsOnlySpare) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(idle, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {512 * kMiB}, true});
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  EXPECT_FALSE(wire::ReceiveMessage(idle.get(), milliseconds(50)).has_value());
}

TEST_F(KeeperDrainTest, WithNothingFreeAnywhereItIsOutOfMemory) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(idle, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {500 * kMiB}});
  GiveBack(idle, Asked(idle), {});
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
}

TEST_F(KeeperDrainTest, ASilentSessionHoldsNobodyUpForLongAndIsNotAskedAgain) {
  wire::Descriptor stopped = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(stopped, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {500 * kMiB}});
  Reclaim asked = Asked(stopped);
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  EXPECT_EQ(Ask(wants, {500 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_FALSE(wire::ReceiveMessage(stopped.get(), milliseconds(0)).has_value());
  GiveBack(stopped, asked, {});  // late, but it is there again
  Say(wants, Lease{7, {500 * kMiB}});
  EXPECT_NE(Asked(stopped).request, asked.request);
}

TEST_F(KeeperDrainTest, ASessionThatWaitsItselfCanStillGiveBack) {
  wire::Descriptor first = Attach(1), second = Attach(2);
  Answer of_first = Ask(first, {500 * kMiB});
  Answer of_second = Ask(second, {400 * kMiB});
  Say(first, Lease{7, {100 * kMiB}});
  Say(second, Lease{7, {540 * kMiB}});
  Reclaim of_second_asked = Asked(second), of_first_asked = Asked(first);
  GiveBack(first, of_first_asked, of_first.chunks);
  GiveBack(second, of_second_asked, {});
  EXPECT_EQ(Hear(first).chunks.size() + Hear(second).chunks.size(), 1u)
      << "100 or 540 of 560 MiB, whichever came first";
}

TEST_F(KeeperDrainTest, ARequestBehindAWaitingLeaseIsAnsweredAfterIt) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  Answer has = Ask(idle, {800 * kMiB});
  Say(wants, Lease{7, {500 * kMiB}});
  Say(wants, Lease{8, {2 * kMiB}});
  GiveBack(idle, Asked(idle), has.chunks);
  EXPECT_EQ(Hear(wants).chunks.at(0).bytes, 500 * kMiB);
  EXPECT_EQ(Hear(wants).chunks.at(0).bytes, 2 * kMiB);
}

TEST_F(KeeperDrainTest, FreeAsToldIsWhatALeaseThenGets) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  Answer has = Ask(idle, {800 * kMiB});
  Say(wants, GetInfo{3});
  GiveBack(idle, Asked(idle), {}, 800 * kMiB);
  EXPECT_EQ(Free(wants), 960 * kMiB);
  Say(wants, Lease{7, {960 * kMiB}});
  GiveBack(idle, Asked(idle), has.chunks);
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
}

TEST_F(KeeperDrainTest, NobodyIsBelievedToKeepMoreThanItHas) {
  wire::Descriptor boaster = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(boaster, {100 * kMiB}).chunks.size(), 1u);
  ASSERT_EQ(Ask(wants, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, GetInfo{3});
  Say(boaster, Reclaimed{Asked(boaster).request, UINT64_MAX, UINT64_MAX});
  EXPECT_EQ(Free(wants), 160 * kMiB);
}

TEST_F(KeeperDrainTest, WhoDoesNotGiveBackWhatItClaimsToHaveFreeIsNotBelievedAgain) {
  wire::Descriptor liar = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(liar, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {500 * kMiB}});
  GiveBack(liar, Asked(liar), {}, 800 * kMiB);
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  std::this_thread::sleep_for(2 * Drain::kFigureAge);
  Say(wants, GetInfo{3});
  GiveBack(liar, Asked(liar), {}, 800 * kMiB);
  EXPECT_EQ(Free(wants), 160 * kMiB);
}

TEST_F(KeeperDrainTest, WhatIsOnlySaidToBeGivenBackIsNotCounted) {
  wire::Descriptor liar = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(liar, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {500 * kMiB}});
  Say(liar, Reclaimed{Asked(liar).request, 800 * kMiB, 0});
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  KeeperState state = State([](const KeeperState& s) { return s.refused != 0; });
  EXPECT_EQ(state.drained, 0u);
  Say(liar, Note{static_cast<uint32_t>(MemoryEventKind::kRemap), UINT64_MAX});
  state = State([](const KeeperState& s) { return s.remaps != 0; });
  EXPECT_LE(state.remapped, state.total);
}

TEST_F(KeeperDrainTest, WhoDoesNotSayWhatItHasFreeCountsAsFull) {
  wire::Descriptor stopped = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(stopped, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, GetInfo{3});
  EXPECT_EQ(Free(wants), 160 * kMiB);
}

TEST_F(KeeperDrainTest, MemoryThatIsNotUsedForLongIsGivenBack) {
  wire::Descriptor quiet = Attach(1), small = Attach(2);
  Say(control, KeeperLimits{UINT64_MAX, 100 * kMiB, 1'000'000});
  Answer has = Ask(quiet, {64 * kMiB, 64 * kMiB});
  ASSERT_EQ(Ask(small, {64 * kMiB}).chunks.size(), 1u);
  Reclaim asked = Asked(quiet);
  EXPECT_TRUE(asked.unused);
  EXPECT_EQ(asked.keep, 100 * kMiB);
  EXPECT_EQ(asked.bytes, UINT64_MAX);
  GiveBack(quiet, asked, {has.chunks[0]}, 64 * kMiB);
  KeeperState state = State([](const KeeperState& s) { return s.returned != 0; });
  EXPECT_EQ(state.returned, 64 * kMiB);
  EXPECT_EQ(state.drained, 0u);
  EXPECT_FALSE(wire::ReceiveMessage(small.get(), milliseconds(50)).has_value());
}

TEST_F(KeeperDrainTest, IdleMemoryBeyondTheConfiguredAmountGoesToTheDriver) {
  Say(control, KeeperLimits{128 * kMiB, UINT64_MAX, 0});
  {
    wire::Descriptor worker = Attach(1);
    ASSERT_EQ(Ask(worker, std::vector<uint64_t>(10, 64 * kMiB)).chunks.size(), 10u);
  }
  State([](const KeeperState& s) { return s.leased == 0 && s.idle == 128 * kMiB; });
  EXPECT_EQ(device.used(), 128 * kMiB);
}

class KeeperDrainOffTest : public KeeperDrainTest {
 protected:
  void SetUp() override { StartKeeper(true, false); }
};

TEST_F(KeeperDrainOffTest, NobodyIsAskedForAnything) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  ASSERT_EQ(Ask(idle, {800 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(Ask(wants, {500 * kMiB}).refuse.code, kOutOfMemory);
  Say(wants, GetInfo{3});
  EXPECT_EQ(Free(wants), 160 * kMiB);
  EXPECT_FALSE(wire::ReceiveMessage(idle.get(), milliseconds(0)).has_value());
}

}  // namespace
}  // namespace longwire::keeper
