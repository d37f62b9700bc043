// The ledger of physical memory over a fake device: who gets which chunk, and in what state.

#include "server/keeper/chunk_pool.h"

#include <gtest/gtest.h>

#include "server/keeper/fake_device.h"

namespace longwire::keeper {
namespace {

using Step = ChunkPool::Step;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class ChunkPoolTest : public testing::Test {
 protected:
  FakeDevice device{1024 * kMiB, 2 * kMiB};
  ChunkPool pool{device, {64 * kMiB, true}};

  void ScrubAll() {
    while (true) {
      std::vector<ScrubJob> jobs = pool.NextScrubs(false);
      if (jobs.empty()) jobs = pool.NextScrubs(true);
      if (jobs.empty()) return;
      for (ScrubJob& job : jobs) job.code = device.Zero(job.handle, job.bytes);
      pool.Scrubbed(jobs);
    }
  }

  // A whole lease, scrubbing on the way. The chunks; empty when refused.
  std::vector<uint64_t> Get(uint64_t worker, std::vector<uint64_t> sizes, int* code = nullptr) {
    LeaseInProgress lease;
    Step step = pool.Start(worker, Lease{1, std::move(sizes)}, &lease);
    while (step == Step::kWaiting) {
      step = pool.Advance(&lease, false);
      if (step == Step::kWaiting) ScrubAll();
    }
    if (code != nullptr) *code = lease.code;
    return step == Step::kGranted ? lease.chunks : std::vector<uint64_t>{};
  }
};

TEST_F(ChunkPoolTest, RoundsUpAndCounts) {
  auto chunks = Get(1, {1, 2 * kMiB, 3 * kMiB, 64 * kMiB});
  ASSERT_EQ(chunks.size(), 4u);
  EXPECT_EQ(pool.BytesOf(chunks[0]), 2 * kMiB);
  EXPECT_EQ(pool.BytesOf(chunks[2]), 4 * kMiB);
  EXPECT_EQ(pool.leased(), 72 * kMiB);
  EXPECT_EQ(pool.lendable(), 960 * kMiB);
  EXPECT_EQ(pool.free(), 888 * kMiB);
  EXPECT_EQ(device.used(), 72 * kMiB);
}

TEST_F(ChunkPoolTest, NewMemoryIsClearedBeforeItIsLent) {
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(1, Lease{1, {2 * kMiB}}, &lease), Step::kWaiting);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
  EXPECT_EQ(device.zeros, 0);
  ScrubAll();
  EXPECT_EQ(device.zeros, 1);
  EXPECT_EQ(pool.Advance(&lease), Step::kGranted);
}

TEST_F(ChunkPoolTest, AChunkComesBackToItsWorkerUncleared) {
  auto first = Get(1, {2 * kMiB});
  pool.Return(1, first);
  EXPECT_EQ(pool.leased(), 0u);
  EXPECT_EQ(Get(1, {2 * kMiB}), first);
  EXPECT_EQ(device.zeros, 1);
}

TEST_F(ChunkPoolTest, AnotherWorkerGetsItOnlyAfterTheFirstIsGoneAndItWasCleared) {
  auto first = Get(1, {64 * kMiB});
  pool.Return(1, first);
  auto second = Get(2, {64 * kMiB});
  EXPECT_NE(first, second);  // worker 1 lives and may still have it mapped
  EXPECT_EQ(device.creates, 2);
  pool.Gone(1);
  EXPECT_EQ(pool.scrub_pending(), 64 * kMiB);
  int zeros = device.zeros;
  EXPECT_EQ(Get(3, {64 * kMiB}), first);
  EXPECT_EQ(device.zeros, zeros + 1);
  EXPECT_EQ(device.creates, 2);
}

TEST_F(ChunkPoolTest, IdleChunksOfOtherSizesMakeRoom) {
  auto small = Get(1, std::vector<uint64_t>(100, 8 * kMiB));
  ASSERT_EQ(small.size(), 100u);
  pool.Gone(1);
  EXPECT_EQ(pool.idle(), 800 * kMiB);
  EXPECT_EQ(Get(2, {512 * kMiB}).size(), 1u);
  EXPECT_LE(device.used(), 960 * kMiB);
  EXPECT_EQ(pool.idle() + pool.leased(), device.used());
}

TEST_F(ChunkPoolTest, MemoryHeldByALivingWorkerMakesRoomToo) {
  pool.Return(1, Get(1, {512 * kMiB}));
  EXPECT_EQ(Get(2, {600 * kMiB}).size(), 1u);
  EXPECT_EQ(device.used(), 600 * kMiB);
}

TEST_F(ChunkPoolTest, ExhaustionRefusesAndLendsNothing) {
  ASSERT_EQ(Get(1, {512 * kMiB}).size(), 1u);
  int code = 0;
  EXPECT_TRUE(Get(2, {64 * kMiB, 512 * kMiB}, &code).empty());
  EXPECT_EQ(code, kOutOfMemory);
  EXPECT_EQ(pool.leased(), 512 * kMiB);
  EXPECT_EQ(device.count(), 1u);
  EXPECT_EQ(Get(2, {448 * kMiB}).size(), 1u);
  EXPECT_EQ(pool.free(), 0u);
}

TEST_F(ChunkPoolTest, AFailingCreateLeaksNothing) {
  for (int nth = 1; nth <= 5; ++nth) {
    device.creates = 0;
    device.fail_create = nth;
    int code = 0;
    EXPECT_TRUE(Get(1, std::vector<uint64_t>(5, 64 * kMiB), &code).empty());
    EXPECT_EQ(code, kOutOfMemory);
    EXPECT_EQ(device.used(), 0u) << "create number " << nth;
    EXPECT_EQ(pool.leased(), 0u);
    EXPECT_EQ(pool.idle(), 0u);
  }
  device.fail_create = 0;
  EXPECT_EQ(Get(1, std::vector<uint64_t>(5, 64 * kMiB)).size(), 5u);
}

TEST_F(ChunkPoolTest, AFailingCreateGivesIdleMemoryBackToTheDriverAndTriesAgain) {
  Get(1, {64 * kMiB});
  pool.Gone(1);
  ScrubAll();
  device.creates = 0;
  device.fail_create = 1;  // as if other programs had taken the rest
  EXPECT_EQ(Get(2, {128 * kMiB}).size(), 1u);
  EXPECT_EQ(device.used(), 128 * kMiB);
}

TEST_F(ChunkPoolTest, MemoryThatCannotBeClearedIsNeverLent) {
  device.fail_zero = 2;
  int code = 0;
  EXPECT_TRUE(Get(1, {2 * kMiB, 2 * kMiB, 2 * kMiB}, &code).empty());
  EXPECT_NE(code, 0);
  EXPECT_EQ(pool.leased(), 0u);
  EXPECT_EQ(device.count(), 2u);  // the cleared ones are kept
  EXPECT_EQ(Get(1, {2 * kMiB, 2 * kMiB, 2 * kMiB}).size(), 3u);
}

TEST_F(ChunkPoolTest, AbsurdSizesAreRefused) {
  int code = 0;
  const uint64_t huge = uint64_t{1} << 63;
  for (const std::vector<uint64_t>& sizes : {std::vector<uint64_t>{huge},
                                             {UINT64_MAX},
                                             {huge, huge},
                                             {UINT64_MAX, UINT64_MAX, 2},
                                             {960 * kMiB, UINT64_MAX - 960 * kMiB},
                                             {961 * kMiB}}) {
    EXPECT_TRUE(Get(1, sizes, &code).empty());
    EXPECT_EQ(code, kOutOfMemory);
  }
  EXPECT_TRUE(Get(1, {}, &code).empty());
  EXPECT_EQ(code, kInvalidValue);
  EXPECT_TRUE(Get(1, {0}, &code).empty());
  EXPECT_EQ(code, kInvalidValue);
  EXPECT_TRUE(Get(1, std::vector<uint64_t>(kMaxChunksPerLease + 1, 1), &code).empty());
  EXPECT_EQ(code, kInvalidValue);
  EXPECT_EQ(device.creates, 0);
}

TEST_F(ChunkPoolTest, ASessionWithTooManyChunksIsOutOfMemory) {
  PoolOptions few{64 * kMiB, true};
  few.max_chunks = 3;
  ChunkPool narrow{device, few};
  LeaseInProgress lease;
  narrow.Start(1, Lease{1, {1, 1, 1, 1}}, &lease);
  EXPECT_EQ(lease.code, kOutOfMemory);
  EXPECT_NE(lease.sentence.find("at most 3"), std::string::npos);
  EXPECT_EQ(narrow.Start(1, Lease{1, {1, 1, 1}}, &lease), Step::kWaiting);
}

TEST_F(ChunkPoolTest, OnlyTheHolderCanReturnAChunk) {
  auto mine = Get(1, {2 * kMiB});
  Get(2, {2 * kMiB});
  pool.Return(2, mine);
  pool.Return(7, mine);
  const uint64_t nonsense[] = {0, 99, UINT64_MAX};
  pool.Return(1, nonsense);
  EXPECT_EQ(pool.leased(), 4 * kMiB);
  const uint64_t twice[] = {mine[0], mine[0]};
  pool.Return(1, twice);
  EXPECT_EQ(pool.leased(), 2 * kMiB);
}

TEST_F(ChunkPoolTest, ALeaseWaitsForAWorkerThatIsEnding) {
  Get(1, {800 * kMiB});
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(2, Lease{1, {800 * kMiB}}, &lease), Step::kWaiting);
  pool.Ending(1);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
  EXPECT_EQ(pool.leased(), 800 * kMiB);
  pool.Gone(1);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);  // now for the scrubbing
  ScrubAll();
  EXPECT_EQ(pool.Advance(&lease), Step::kGranted);
  EXPECT_EQ(device.creates, 1);
}

TEST_F(ChunkPoolTest, ACancelledLeaseGivesEverythingBack) {
  for (int stage = 0; stage < 3; ++stage) {
    const std::vector<uint64_t> sizes = {64 * kMiB, (2 + 2 * stage) * kMiB};  // new: to be scrubbed
    LeaseInProgress lease;
    ASSERT_EQ(pool.Start(1, Lease{1, sizes}, &lease), Step::kWaiting);
    std::vector<ScrubJob> jobs;
    if (stage >= 1) {
      EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
    }
    if (stage >= 2) jobs = pool.NextScrubs(false);
    pool.Cancel(&lease);
    pool.Gone(1);
    EXPECT_EQ(pool.leased(), 0u);
    pool.Scrubbed(jobs);
    ScrubAll();
    EXPECT_EQ(pool.scrub_pending(), 0u);
    EXPECT_EQ(pool.idle(), device.used());
    EXPECT_EQ(Get(2, sizes).size(), 2u);
    pool.Gone(2);
    ScrubAll();
  }
  EXPECT_EQ(device.creates, 4);
}

TEST_F(ChunkPoolTest, ALeaseThatLacksMemoryGoesOnWhenSomeCameBack) {
  auto free = Get(1, {300 * kMiB, 300 * kMiB, 300 * kMiB});
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(2, Lease{1, {400 * kMiB, 200 * kMiB}}, &lease), Step::kWaiting);
  EXPECT_EQ(pool.Advance(&lease), Step::kRefused);
  EXPECT_EQ(lease.lacks, 540 * kMiB);
  EXPECT_FALSE(lease.of_tenant);
  pool.Return(1, std::span(free).first(1));
  EXPECT_EQ(pool.Advance(&lease), Step::kRefused);
  EXPECT_EQ(lease.lacks, 240 * kMiB);
  pool.Return(1, free);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);  // for the scrubbing
  ScrubAll();
  EXPECT_EQ(pool.Advance(&lease), Step::kGranted);
  EXPECT_EQ(pool.leased(), 600 * kMiB);
  EXPECT_LE(device.used(), pool.lendable());
}

TEST_F(ChunkPoolTest, ADrainSurvivesEveryFailureOfTheDevice) {
  for (int nth = 1; nth <= 8; ++nth) {
    auto free = Get(1, std::vector<uint64_t>(7, 128 * kMiB));
    ASSERT_EQ(free.size(), 7u);
    device.creates = 0;
    device.fail_create = nth;
    LeaseInProgress lease;
    ASSERT_EQ(pool.Start(2, Lease{1, std::vector<uint64_t>(6, 100 * kMiB)}, &lease),
              Step::kWaiting);
    Step step = Step::kWaiting;
    for (size_t given = 0; step != Step::kGranted;) {
      step = pool.Advance(&lease);
      if (step == Step::kWaiting) ScrubAll();
      if (step != Step::kRefused) continue;
      EXPECT_GT(lease.lacks, 0u);
      EXPECT_EQ(pool.LeasedBy(2), 0u) << "nothing is lent by halves";
      ASSERT_LT(given, free.size()) << "create number " << nth;
      pool.Return(1, std::span(free).subspan(given++, 1));
    }
    EXPECT_EQ(pool.LeasedBy(2), 600 * kMiB);
    EXPECT_EQ(pool.leased() + pool.idle(), device.used());
    device.fail_create = 0;
    pool.Gone(1);
    pool.Gone(2);
    pool.Trim(0);
    EXPECT_EQ(device.used(), 0u);
  }
}

TEST_F(ChunkPoolTest, IdleChunksAreKeptUpToAnAmount) {
  Get(1, std::vector<uint64_t>(10, 64 * kMiB));
  pool.Gone(1);
  pool.Trim(640 * kMiB);
  EXPECT_EQ(device.count(), 10u);
  pool.Trim(200 * kMiB);
  EXPECT_EQ(device.used(), 192 * kMiB);
  ScrubAll();
  EXPECT_EQ(Get(2, std::vector<uint64_t>(3, 64 * kMiB)).size(), 3u);
  pool.Trim(0);
  EXPECT_EQ(device.used(), 192 * kMiB) << "what is lent stays";
}

TEST_F(ChunkPoolTest, WhatSomebodyWaitsForIsClearedFirst) {
  Get(1, std::vector<uint64_t>(50, 16 * kMiB));
  pool.Gone(1);
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(2, Lease{1, {2 * kMiB}}, &lease), Step::kWaiting);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
  std::vector<ScrubJob> jobs = pool.NextScrubs(false);
  ASSERT_FALSE(jobs.empty());
  EXPECT_EQ(jobs[0].bytes, 2 * kMiB);
  pool.Scrubbed(jobs);
  EXPECT_EQ(pool.Advance(&lease), Step::kGranted);
  EXPECT_GT(pool.scrub_pending(), 0u);
}

TEST_F(ChunkPoolTest, LargeChunksAreClearedApartFromSmallOnes) {
  Get(1, {512 * kMiB, 64 * kMiB, 128 * kMiB, 2 * kMiB});
  pool.Gone(1);
  std::vector<ScrubJob> large = pool.NextScrubs(true);
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(large[0].bytes, 512 * kMiB);
  std::vector<ScrubJob> small = pool.NextScrubs(false);
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(small[0].bytes, 2 * kMiB);
  EXPECT_EQ(small[1].bytes, 64 * kMiB);
  EXPECT_TRUE(pool.NextScrubs(false).empty());
  EXPECT_EQ(pool.NextScrubs(true).size(), 1u);
}

TEST_F(ChunkPoolTest, PreparedMemoryIsThereAtOnce) {
  EXPECT_TRUE(pool.Prepare(64 * kMiB));
  ScrubAll();
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(1, Lease{1, {64 * kMiB}}, &lease), Step::kWaiting);
  EXPECT_EQ(pool.Advance(&lease), Step::kGranted);
}

TEST_F(ChunkPoolTest, RandomTrafficKeepsTheLedgerRight) {
  unsigned random = 12345;
  auto next = [&](unsigned limit) { return (random = random * 1664525 + 1013904223) / 7 % limit; };
  std::map<uint64_t, std::vector<uint64_t>> lent;
  for (int i = 0; i < 3000; ++i) {
    uint64_t worker = 1 + next(6);
    unsigned what = next(10);
    if (what < 5) {
      std::vector<uint64_t> sizes(1 + next(4), (1 + next(30)) * 2 * kMiB);
      for (uint64_t chunk : Get(worker, sizes)) lent[worker].push_back(chunk);
    } else if (what < 9 && !lent[worker].empty()) {
      std::vector<uint64_t> back(1, lent[worker].back());
      lent[worker].pop_back();
      pool.Return(worker, back);
    } else if (what == 9) {
      pool.Gone(worker);
      lent[worker].clear();
    }
    uint64_t leased = 0;
    for (auto& [holder, chunks] : lent) {
      for (uint64_t chunk : chunks) leased += pool.BytesOf(chunk);
    }
    ASSERT_EQ(pool.leased(), leased);
    ASSERT_EQ(pool.leased() + pool.idle(), device.used());
    ASSERT_LE(device.used(), pool.lendable());
  }
}

}  // namespace
}  // namespace longwire::keeper
