// A buffer that grows: its memory takes the place of a copy.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mempool/testing/watched_pool.h"

namespace longwire::mempool::testing {
namespace {

// A new block of `bytes` replaces the old one and has its contents.
bool Grow(WatchedPool& watched, uint64_t bytes, uint64_t* address) {
  uint64_t larger = 0;
  if (watched.Allocate(bytes, &larger) != kDone || !watched.Move(*address, larger)) return false;
  *address = larger;
  return true;
}

TEST(Moves, ABufferDoublesUntilItIsTheDevice) {
  WatchedPool watched(64 * kGiB);
  uint64_t address = 0, bytes = 64 * kMiB;
  ASSERT_EQ(kDone, watched.Allocate(bytes, &address));
  uint64_t moved = 0;
  for (; bytes < 32 * kGiB; bytes *= 2) {
    ASSERT_TRUE(Grow(watched, 2 * bytes, &address)) << bytes;
    moved += bytes;
    watched.device.Finish();
  }
  EXPECT_EQ(moved, watched.device.moved_bytes);
  EXPECT_EQ("", watched.fault());
}

TEST(Moves, InSmallStepsToo) {
  WatchedPool watched(64 * kGiB);
  uint64_t address = 0, bytes = 100 * kMiB;
  ASSERT_EQ(kDone, watched.Allocate(bytes, &address));
  for (int step = 0; step < 40; ++step) {
    bytes += bytes / 8 / (2 * kMiB) * (2 * kMiB);
    ASSERT_TRUE(Grow(watched, bytes, &address)) << step;
  }
  EXPECT_EQ(40u, watched.device.remaps);
  EXPECT_EQ("", watched.fault());
}

TEST(Moves, AgainAndAgainNothingIsLeased) {
  WatchedPool watched(16 * kGiB);
  uint64_t leases = 0, leased = 0;
  for (int round = 0; round < 10; ++round) {
    uint64_t address = 0;
    ASSERT_EQ(kDone, watched.Allocate(3 * kGiB / 2, &address));
    ASSERT_TRUE(Grow(watched, 3 * kGiB, &address)) << round;
    watched.Free(address, 0);
    watched.device.Finish();
    if (round == 0) leases = watched.device.leases, leased = watched.device.leased();
  }
  EXPECT_EQ(leases, watched.device.leases);
  EXPECT_EQ(leased, watched.device.leased());
  EXPECT_EQ("", watched.fault());
}

TEST(Moves, AlsoWhereLargeChunksComeInPieces) {
  WatchedPool watched(64 * kGiB);
  watched.device.SetLargest(512 * kMiB);
  uint64_t address = 0;
  ASSERT_EQ(kDone, watched.Allocate(1700 * kMiB, &address));
  for (uint64_t bytes : {4 * kGiB, 9 * kGiB + 64 * kMiB, 30 * kGiB}) {
    ASSERT_TRUE(Grow(watched, bytes, &address)) << bytes;
  }
  EXPECT_EQ("", watched.fault());
}

TEST(Moves, ThereIsRoomForACopyUntilTheMove) {
  WatchedPool watched(16 * kGiB);
  uint64_t address = 0, larger = 0;
  ASSERT_EQ(kDone, watched.Allocate(6 * kGiB, &address));
  ASSERT_EQ(kDone, watched.Allocate(10 * kGiB, &larger));
  EXPECT_EQ(16 * kGiB, watched.device.mapped()) << "the larger one has all its memory";
  uint64_t none = 0;
  EXPECT_EQ(kNoMemory, watched.Allocate(2 * kMiB, &none)) << "as without a move";
  ASSERT_TRUE(watched.Move(address, larger));
  ASSERT_EQ(kDone, watched.Allocate(6 * kGiB, &none)) << "what the larger one had is free now";
  EXPECT_EQ("", watched.fault());
}

TEST(Moves, WhatHasNoChunksOfItsOwnIsCopied) {
  WatchedPool watched(4 * kGiB);
  uint64_t small = 0, block = 0, larger = 0, moved = 0;
  ASSERT_EQ(kDone, watched.Allocate(63 * kMiB, &small));
  ASSERT_EQ(kDone, watched.Allocate(100 * kMiB, &block));
  ASSERT_EQ(kDone, watched.Allocate(200 * kMiB, &larger));
  EXPECT_FALSE(watched.Move(small, block));
  EXPECT_FALSE(watched.Move(block, small));
  EXPECT_FALSE(watched.Move(larger, block)) << "it would not fit";
  EXPECT_FALSE(watched.pool.CanMove(block, block, &moved));
  EXPECT_TRUE(watched.pool.CanMove(block, larger, &moved));
  watched.Free(larger, 0);
  EXPECT_FALSE(watched.pool.CanMove(block, larger, &moved)) << "not in use";
  EXPECT_EQ(0u, watched.device.remaps);
  EXPECT_EQ("", watched.fault());
}

// The larger block was there first, in one chunk: its rest is put together of what is spare, or the
// copy is made.
TEST(Moves, WhereNoChunkEndsTheRestIsPutTogetherAnew) {
  WatchedPool watched(16 * kGiB);
  uint64_t larger = 0, address = 0, spare = 0, moved = 0;
  ASSERT_EQ(kDone, watched.Allocate(3 * kGiB, &larger));
  ASSERT_EQ(kDone, watched.Allocate(kGiB, &address));
  EXPECT_FALSE(watched.pool.CanMove(address, larger, &moved));
  EXPECT_FALSE(watched.Move(address, larger));
  ASSERT_EQ(kDone, watched.Allocate(2 * kGiB, &spare));
  uint64_t fifth = 0;
  ASSERT_EQ(kDone, watched.Allocate(5 * kGiB, &fifth));
  ASSERT_TRUE(watched.Move(spare, fifth)) << "and now there is a spare chunk of 2 GiB";
  ASSERT_TRUE(watched.Move(address, larger));
  EXPECT_EQ("", watched.fault());
}

// Whatever fails: the move is made or not, and everything is where it was.
TEST(Moves, AFailureAtEveryStepLosesNothing) {
  uint64_t calls = 0;
  for (uint64_t nth = 0; nth <= calls; ++nth) {
    WatchedPool watched(24 * kGiB);
    watched.device.FailAt(nth);
    std::vector<uint64_t> buffers(3);  // 0: there was no memory
    auto allocate = [&](uint64_t bytes) {
      uint64_t address = 0;
      return watched.Allocate(bytes, &address) == kDone ? address : 0;
    };
    for (uint64_t bytes = 128 * kMiB; bytes <= 4 * kGiB; bytes *= 2) {
      for (uint64_t& buffer : buffers) {
        if (buffer == 0) buffer = allocate(bytes / 2);
        uint64_t larger = allocate(bytes);
        if (buffer == 0 || larger == 0) {
          if (larger != 0) watched.Free(larger, 1);
          continue;
        }
        if (!watched.Move(buffer, larger)) watched.Free(buffer, 7);
        buffer = larger;
      }
    }
    if (nth == 0) calls = watched.device.calls();
    ASSERT_EQ("", watched.fault()) << nth;
    while (!watched.live().empty()) watched.Free(watched.live().begin()->first, 0);
    watched.FinishAll();
    watched.pool.GiveBack(UINT64_MAX, false);
    watched.device.Finish();
    EXPECT_EQ(0u, watched.device.leased()) << nth;
    EXPECT_EQ(0u, watched.device.mapped()) << nth;
    ASSERT_EQ("", watched.fault()) << nth;
  }
  EXPECT_GT(calls, 30u);
}

}  // namespace
}  // namespace longwire::mempool::testing
