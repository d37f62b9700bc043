// A tenant's memory limit in the chunk pool: what is charged, what is refunded, what a worker sees.
#include <gtest/gtest.h>

#include "server/keeper/chunk_pool.h"
#include "server/keeper/fake_device.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

using Step = ChunkPool::Step;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint32_t kTenant = 1;

class QuotaPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    ledger->SetLimit(kTenant, 100 * kMiB);
    quota.Assign(1, kTenant);
    quota.Assign(2, kTenant);
  }

  std::vector<uint64_t> Get(uint64_t worker, std::vector<uint64_t> sizes, int* code = nullptr) {
    LeaseInProgress lease;
    Step step = pool.Start(worker, Lease{1, std::move(sizes)}, &lease);
    while (step == Step::kWaiting) {
      step = pool.Advance(&lease, false);
      for (bool large : {false, true}) {
        std::vector<ScrubJob> jobs = pool.NextScrubs(large);
        for (ScrubJob& job : jobs) job.code = device.Zero(job.handle, job.bytes);
        pool.Scrubbed(jobs);
      }
    }
    if (code != nullptr) *code = lease.code;
    return step == Step::kGranted ? lease.chunks : std::vector<uint64_t>{};
  }

  std::unique_ptr<TenantLedger> ledger = TenantLedger::Create();
  Quota quota{*ledger, 0, !wire::GuardIsOff("quota")};
  FakeDevice device{1024 * kMiB, 2 * kMiB};
  ChunkPool pool{device, {.quota = &quota}};
};

TEST_F(QuotaPoolTest, NotAChunkMoreThanTheLimit) {
  int code = 0;
  EXPECT_EQ(Get(1, {64 * kMiB, 34 * kMiB}).size(), 2u);
  EXPECT_EQ(pool.FreeFor(2), 2 * kMiB);
  EXPECT_TRUE(Get(2, {4 * kMiB}, &code).empty());
  EXPECT_EQ(code, kOutOfMemory);
  EXPECT_EQ(Get(2, {2 * kMiB}).size(), 1u);
  EXPECT_EQ(ledger->room(kTenant), 0u);
  EXPECT_EQ(Get(9, {64 * kMiB}).size(), 1u) << "the neighbour has nothing of it";
}

TEST_F(QuotaPoolTest, WhatComesBackCanBeHadAgain) {
  auto chunks = Get(1, {100 * kMiB});
  pool.Return(1, chunks);
  EXPECT_EQ(ledger->charged(kTenant), 0u);
  EXPECT_EQ(Get(2, {100 * kMiB}).size(), 1u);
  pool.Gone(2);
  EXPECT_EQ(ledger->charged(kTenant), 0u);
}

TEST_F(QuotaPoolTest, ALeaseThatFailsCostsNothing) {
  int code = 0;
  device.fail_create = 2;  // the second chunk
  EXPECT_TRUE(Get(1, {2 * kMiB, 4 * kMiB}, &code).empty());
  EXPECT_EQ(code, kOutOfMemory);
  EXPECT_EQ(ledger->charged(kTenant), 0u);
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(1, Lease{1, {2 * kMiB}}, &lease), Step::kWaiting);
  pool.Advance(&lease);
  EXPECT_EQ(ledger->charged(kTenant), 2 * kMiB);
  pool.Cancel(&lease);
  EXPECT_EQ(ledger->charged(kTenant), 0u);
}

TEST_F(QuotaPoolTest, WhatATenantLacksIsToldApartFromWhatTheDeviceLacks) {
  auto free = Get(1, {60 * kMiB});
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(2, Lease{1, {50 * kMiB}}, &lease), Step::kWaiting);
  EXPECT_EQ(pool.Advance(&lease), Step::kRefused);
  EXPECT_EQ(lease.lacks, 10 * kMiB);
  EXPECT_TRUE(lease.of_tenant);
  pool.Return(1, free);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
  EXPECT_EQ(ledger->charged(kTenant), 50 * kMiB);
}

TEST_F(QuotaPoolTest, ALeaseWaitsForItsTenantsSessionThatIsEnding) {
  Get(1, {100 * kMiB});
  LeaseInProgress lease;
  ASSERT_EQ(pool.Start(2, Lease{1, {50 * kMiB}}, &lease), Step::kWaiting);
  pool.Ending(9);
  EXPECT_EQ(pool.Advance(&lease), Step::kRefused) << "another tenant's end does not help";
  pool.Ending(1);
  EXPECT_EQ(pool.Advance(&lease), Step::kWaiting);
}

TEST_F(QuotaPoolTest, OthersCannotHaveWhatIsReserved) {
  int code = 0;
  ledger->SetReservation(kTenant, 80 * kMiB);
  EXPECT_EQ(pool.FreeFor(9), 944 * kMiB);
  EXPECT_EQ(pool.FreeFor(1), 100 * kMiB);
  EXPECT_TRUE(Get(9, {946 * kMiB}, &code).empty());
  EXPECT_EQ(code, kOutOfMemory);
  EXPECT_EQ(Get(9, {944 * kMiB}).size(), 1u);
  EXPECT_EQ(Get(1, {50 * kMiB}).size(), 1u);
  EXPECT_EQ(pool.FreeFor(9), 0u);
  EXPECT_EQ(Get(2, {30 * kMiB}).size(), 1u);
  EXPECT_TRUE(Get(2, {2 * kMiB}, &code).empty()) << "the device is full";
  pool.Gone(2);
  EXPECT_EQ(pool.FreeFor(9), 0u) << "what came back is reserved again";
  ledger->SetReservation(kTenant, 0);
  EXPECT_EQ(pool.FreeFor(9), 30 * kMiB);
}

TEST_F(QuotaPoolTest, FreeAsToldCountsWhatOthersWouldGiveBack) {
  Get(1, {60 * kMiB});
  Get(9, {900 * kMiB});
  EXPECT_EQ(pool.FreeFor(2), 40 * kMiB);
  EXPECT_EQ(pool.FreeFor(2, 30 * kMiB, 20 * kMiB), 60 * kMiB) << "its limit, with its siblings'";
  EXPECT_EQ(pool.FreeFor(10), 64 * kMiB);
  EXPECT_EQ(pool.FreeFor(10, 500 * kMiB, 0), 564 * kMiB);
}

TEST_F(QuotaPoolTest, AWorkerSeesItsTenantsMemory) {
  EXPECT_EQ(pool.TotalFor(1), 100 * kMiB);
  EXPECT_EQ(pool.TotalFor(9), 1024 * kMiB);
  Get(1, {40 * kMiB});
  EXPECT_EQ(pool.FreeFor(2), 60 * kMiB);
  EXPECT_EQ(pool.FreeFor(9), 984 * kMiB);
}

}  // namespace
}  // namespace longwire::keeper
