// What the pool promises, at single points.
#include "mempool/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "mempool/testing/watched_pool.h"

namespace longwire::mempool::testing {
namespace {

TEST(Pool, WithinTheLeaseNothingIsAskedOfTheDevice) {
  WatchedPool watched(8 * kGiB);
  for (uint64_t bytes = 256; bytes <= 64 * kMiB; bytes *= 2) {
    uint64_t address = 0;
    ASSERT_EQ(kDone, watched.Allocate(bytes, &address));
    watched.Free(address);
    uint64_t before = watched.device.calls();
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(kDone, watched.Allocate(bytes, &address));
      watched.Free(address);
    }
    EXPECT_EQ(before, watched.device.calls()) << bytes;
  }
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, MemoryThatRestsIsWaitedForBeforeMoreIsLeased) {
  WatchedPool watched(kGiB);
  uint64_t address = 0;
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(kDone, watched.Allocate(700 * kMiB, &address)) << round;
    watched.Work(round % 3);
    watched.Free(address, 7);
  }
  EXPECT_EQ(700 * kMiB, watched.device.leased());
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, AnIdleBlockIsTakenBeforeRestingMemoryIsWaitedFor) {
  WatchedPool watched(kGiB);
  uint64_t resting = 0, block = 0, address = 0;
  ASSERT_EQ(kDone, watched.Allocate(40 * kMiB, &resting));
  ASSERT_EQ(kDone, watched.Allocate(64 * kMiB, &block));
  watched.Free(block);
  watched.Work(0);
  watched.Free(resting, 1);
  uint64_t calls = watched.device.calls();
  EXPECT_EQ(kDone, watched.pool.Place(40 * kMiB, nullptr, &address));
  EXPECT_EQ(calls, watched.device.calls());
}

TEST(Pool, AFreeChunkOfTheArenaIsABlock) {
  WatchedPool watched(kGiB);
  uint64_t first = 0, second = 0, block = 0;
  ASSERT_EQ(kDone, watched.Allocate(40 * kMiB, &first));
  ASSERT_EQ(kDone, watched.Allocate(40 * kMiB, &second));
  watched.Free(first);
  watched.Free(second);
  uint64_t calls = watched.device.calls();
  EXPECT_EQ(kDone, watched.Allocate(64 * kMiB, &block));
  EXPECT_EQ(calls, watched.device.calls());
  EXPECT_EQ(kDone, watched.Allocate(40 * kMiB, &first)) << "the other one stays the arena's";
  EXPECT_EQ(calls, watched.device.calls());
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, ALargeBlockIsPutTogetherOfWhatIsFree) {
  WatchedPool watched(8 * kGiB);
  std::vector<uint64_t> blocks(64);
  for (uint64_t& block : blocks) ASSERT_EQ(kDone, watched.Allocate(100 * kMiB, &block));
  for (size_t i = 0; i < blocks.size(); i += 2) watched.Free(blocks[i]);
  uint64_t leases = watched.device.leases, address = 0;
  ASSERT_EQ(kDone, watched.Allocate(3200 * kMiB, &address));
  EXPECT_EQ(leases, watched.device.leases) << "without waiting for anybody";
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, AfterRandomFreesNearlyAllThatIsFreeIsOneBlock) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    WatchedPool watched(139 * kGiB);
    std::mt19937_64 random(seed);
    std::vector<uint64_t> blocks;
    uint64_t address = 0;
    while (watched.Allocate(64 * kMiB, &address) == kDone) blocks.push_back(address);
    ASSERT_GT(blocks.size(), 2200u);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (size_t i = 0; i < blocks.size() / 2; ++i) watched.Free(blocks[i]);
    uint64_t free = 139 * kGiB - watched.live_bytes();
    ASSERT_EQ(kDone, watched.Allocate(free / 100 * 98, &address));
    EXPECT_EQ("", watched.fault());
  }
}

TEST(Pool, ChunksOfAnySizeAreFreedForOneOfAnother) {
  WatchedPool watched(4 * kGiB);
  uint64_t address = 0;
  // Each takes all there is, in sizes that are of no use for the next.
  for (uint64_t bytes : {4 * kGiB, 100 * kMiB, 3 * kMiB, 2 * kGiB, 64 * kMiB, 4 * kGiB}) {
    std::vector<uint64_t> taken;
    while (watched.Allocate(bytes, &address) == kDone) taken.push_back(address);
    EXPECT_EQ(4 * kGiB / bytes, taken.size()) << bytes;
    for (uint64_t each : taken) watched.Free(each);
  }
  EXPECT_EQ("", watched.fault());
}

// Half a chunk is missing: one that is given back for it comes too late for the first lease.
TEST(Pool, WhatIsGivenBackJustAfterALeaseFailedIsAskedForAgain) {
  for (bool outside : {false, true}) {
    WatchedPool watched(512 * kMiB);
    watched.device.FinishUnseen();
    uint64_t address = 0;
    std::vector<uint64_t> blocks;
    while (watched.Allocate(64 * kMiB, &address) == kDone) blocks.push_back(address);
    ASSERT_EQ(8u, blocks.size());
    for (size_t i = 0; i < 5; ++i) watched.Free(blocks[i]);
    std::vector<Chunk> chunks;
    if (outside) {
      int code = Pool::kWaitForDevice;
      while (code == Pool::kWaitForDevice) {
        code = watched.pool.LeaseOutside(288 * kMiB, &chunks);
      }
      EXPECT_EQ(kDone, code);
    } else {
      EXPECT_EQ(kDone, watched.Allocate(288 * kMiB, &address));
    }
    EXPECT_EQ("", watched.fault());
  }
}

TEST(Pool, FreeMemoryIsGivenBackButForOneChunkOfTheArena) {
  WatchedPool watched(4 * kGiB);
  std::vector<uint64_t> taken(20);
  for (uint64_t& each : taken) ASSERT_EQ(kDone, watched.Allocate(30 * kMiB, &each));
  uint64_t block = 0, kept = 0;
  ASSERT_EQ(kDone, watched.Allocate(kGiB, &block));
  ASSERT_EQ(kDone, watched.Allocate(100 * kMiB, &kept));
  for (uint64_t each : taken) watched.Free(each);
  watched.Free(block);
  EXPECT_GE(watched.pool.GiveBack(200 * kMiB), 200 * kMiB);
  watched.pool.GiveBack(UINT64_MAX);
  EXPECT_EQ(164 * kMiB, watched.device.leased());
  EXPECT_EQ(watched.device.leased(), watched.pool.leased());
  uint64_t calls = watched.device.calls();
  ASSERT_EQ(kDone, watched.Allocate(kMiB, &block));
  EXPECT_EQ(calls, watched.device.calls());
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, AllThatIsFreeInWholeChunksCanBeGivenBack) {
  WatchedPool watched(4 * kGiB);
  uint64_t small = 0, block = 0;
  ASSERT_EQ(kDone, watched.Allocate(kMiB, &small));
  ASSERT_EQ(kDone, watched.Allocate(kGiB, &block));
  watched.Free(block);
  EXPECT_EQ(kGiB, watched.pool.idle_chunks());
  EXPECT_GT(watched.pool.idle(), kGiB) << "the rest of the small one's chunk";
  watched.Free(small);
  uint64_t all = watched.pool.idle_chunks();
  EXPECT_EQ(watched.pool.leased(), all);
  EXPECT_EQ(all, watched.pool.GiveBack(UINT64_MAX, false));
  EXPECT_EQ(0u, watched.device.leased());
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, WhatRestsForOneStreamIsUsedAgainInThatStreamAtOnce) {
  WatchedPool watched(kGiB);
  FakeStream* stream = &watched.streams[1];
  for (uint64_t bytes : {uint64_t{1000}, 5 * kMiB, 100 * kMiB}) {
    uint64_t first = 0, elsewhere = 0, again = 0;
    ASSERT_EQ(kDone, watched.Allocate(bytes, &first, stream));
    watched.Work(1);
    watched.Free(first, 2);
    ASSERT_EQ(kDone, watched.Allocate(bytes / 2, &elsewhere, &watched.streams[0]));
    EXPECT_NE(first, elsewhere);
    ASSERT_EQ(kDone, watched.Allocate(bytes, &again, stream));
    EXPECT_EQ(first, again);
    watched.Free(again);
    watched.Free(elsewhere);
  }
  watched.FinishAll();
  EXPECT_EQ(0, watched.device.marks());
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, WhatWasFreedForAllIsUsedAgainAtOnceBehindTheWorkOfOneStream) {
  for (uint64_t bytes : {40 * kMiB, 100 * kMiB}) {
    WatchedPool watched(kGiB);
    watched.device.SetPuttingBehind(true);
    uint64_t first = 0, again = 0;
    ASSERT_EQ(kDone, watched.Allocate(bytes, &first));
    watched.Work(1);
    watched.Free(first, 2);
    uint64_t calls = watched.device.calls();
    ASSERT_EQ(kDone, watched.Allocate(bytes, &again));
    EXPECT_EQ(first, again);
    EXPECT_EQ(calls, watched.device.calls());
    EXPECT_EQ(1u, watched.streams[1].in_front);
    EXPECT_EQ(0u, watched.streams[1].finished) << "it was waited for";
    watched.Free(again);
    watched.FinishAll();
    EXPECT_EQ(0, watched.device.marks());
    EXPECT_EQ("", watched.fault());
  }
}

TEST(Pool, WhatTheDevicePutsNothingBehindIsWaitedFor) {
  WatchedPool watched(kGiB);
  uint64_t address = 0;
  ASSERT_EQ(kDone, watched.Allocate(100 * kMiB, &address));
  watched.Work(1);
  watched.Free(address, 2);
  EXPECT_EQ(Pool::kWaitForWork, watched.pool.Place(100 * kMiB, nullptr, &address));
}

TEST(Pool, WhatSeveralStreamsMayUseAndWhatOneWasToldOfIsWaitedFor) {
  WatchedPool watched(kGiB);
  watched.device.SetPuttingBehind(true);
  uint64_t first = 0, second = 0, address = 0;
  ASSERT_EQ(kDone, watched.Allocate(100 * kMiB, &first));
  ASSERT_EQ(kDone, watched.Allocate(200 * kMiB, &second, &watched.streams[1]));
  watched.Work(0);
  watched.Work(1);
  watched.Free(first, 3);
  watched.Free(second, 2);
  EXPECT_EQ(Pool::kWaitForWork, watched.pool.Place(100 * kMiB, nullptr, &address));
  EXPECT_EQ(Pool::kWaitForWork, watched.pool.Place(200 * kMiB, nullptr, &address));
}

TEST(Pool, WhatLiesBehindTheNewestReservationIsFree) {
  WatchedPool watched(kGiB);
  uint64_t address = 0, first = 0, behind = 0, other = 0;
  ASSERT_EQ(kDone, watched.pool.TakeAddresses(64 * kMiB, 0, &first));
  for (uint64_t bytes : {kMiB, 64 * kMiB, 300 * kMiB}) {
    ASSERT_EQ(kDone, watched.Allocate(bytes, &address));
  }
  ASSERT_EQ(kDone, watched.pool.TakeAddresses(64 * kMiB, first + 64 * kMiB, &behind));
  EXPECT_EQ(first + 64 * kMiB, behind);
  ASSERT_EQ(kDone, watched.pool.TakeAddresses(64 * kMiB, first + 64 * kMiB, &other));
  EXPECT_NE(behind, other) << "it is taken";
  EXPECT_EQ("", watched.fault());
}

TEST(Pool, AllOfTheWindowCanBeReserved) {
  WatchedPool watched(kGiB);  // a window of 8 GiB
  uint64_t address = 0;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(kDone, watched.pool.TakeAddresses(kGiB, 0, &address)) << i;
  }
  EXPECT_EQ(kNoMemory, watched.pool.TakeAddresses(2 * kMiB, 0, &address));
}

TEST(Pool, AddressesAreUsedAgainOnlyWhenTheyAreUnmapped) {
  // A window with room for two blocks only: the third waits for the first one's addresses.
  for (bool unseen : {false, true}) {
    WatchedPool watched(4 * kGiB, 5 * kGiB);
    if (unseen) watched.device.FinishUnseen();
    uint64_t address = 0;
    for (uint64_t more : {0, 2, 4, 6}) {
      ASSERT_EQ(kDone, watched.Allocate(2 * kGiB + more * kMiB, &address)) << more;
      watched.Free(address);
    }
    EXPECT_EQ("", watched.fault());
  }
}

}  // namespace
}  // namespace longwire::mempool::testing
