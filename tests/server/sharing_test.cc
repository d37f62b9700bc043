// Chunks that several workers of a tenant have, over a fake device: who gets them by a token, who
// pays for them, and when their bytes are free.
#include <gtest/gtest.h>

#include <map>

#include "server/keeper/chunk_pool.h"
#include "server/keeper/fake_device.h"

namespace longwire::keeper {
namespace {

using Step = ChunkPool::Step;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kOwner = 1, kFriend = 2, kStranger = 3;

class SharingTest : public testing::Test {
 protected:
  SharingTest() {
    quota.Assign(kOwner, 5);
    quota.Assign(kFriend, 5);
    quota.Assign(kStranger, 6);
    ledger->SetLimit(5, 8 * kMiB);
    chunks = Get(kOwner, {2 * kMiB, 4 * kMiB});
  }

  std::vector<uint64_t> Get(uint64_t worker, const std::vector<uint64_t>& sizes) {
    LeaseInProgress lease;
    Step step = pool.Start(worker, Lease{1, sizes}, &lease);
    if (step == Step::kWaiting) step = pool.Advance(&lease, false);
    return step == Step::kGranted ? lease.chunks : std::vector<uint64_t>{};
  }

  std::vector<uint64_t> Borrow(uint64_t worker, const ChunkPool::Token& token) {
    LeaseInProgress lease;
    Step step = pool.Borrow(worker, token, &lease);
    EXPECT_EQ(step == Step::kGranted, lease.code == kSuccess);
    return step == Step::kGranted ? lease.chunks : std::vector<uint64_t>{};
  }

  FakeDevice device{64 * kMiB, 2 * kMiB};
  std::unique_ptr<TenantLedger> ledger = TenantLedger::Create();
  Quota quota{*ledger, 0, true};
  ChunkPool pool{device, {.scrub = false, .quota = &quota}};
  std::vector<uint64_t> chunks;
  ChunkPool::Token token{};
};

TEST_F(SharingTest, AFriendBorrowsTheSameChunksAndPaysNothing) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token), kSuccess);
  EXPECT_EQ(Borrow(kFriend, token), chunks);
  EXPECT_EQ(ledger->charged(5), 6 * kMiB);
  EXPECT_EQ(pool.leased(), 6 * kMiB);
  EXPECT_EQ(device.used(), 6 * kMiB);
}

TEST_F(SharingTest, TheSameChunksHaveOneTokenOthersAnother) {
  ChunkPool::Token again{}, part{};
  ASSERT_EQ(pool.Share(kOwner, chunks, &token), kSuccess);
  ASSERT_EQ(pool.Share(kOwner, chunks, &again), kSuccess);
  ASSERT_EQ(pool.Share(kOwner, std::span(chunks).subspan(1), &part), kSuccess);
  EXPECT_EQ(token, again);
  EXPECT_NE(token, part);
  EXPECT_EQ(Borrow(kFriend, part).size(), 1u);
}

TEST_F(SharingTest, OnlyTheTenantsWorkersBorrow) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token), kSuccess);
  EXPECT_TRUE(Borrow(kStranger, token).empty());
  EXPECT_TRUE(Borrow(kFriend, {token[0], token[1] ^ 1}).empty());
}

TEST_F(SharingTest, OnlyWhatAWorkerHasIsShared) {
  EXPECT_EQ(pool.Share(kStranger, chunks, &token), kInvalidValue);
  EXPECT_EQ(pool.Share(kOwner, {}, &token), kInvalidValue);
  chunks.push_back(4711);
  EXPECT_EQ(pool.Share(kOwner, chunks, &token), kInvalidValue);
}

TEST_F(SharingTest, TheBytesStayUntilTheLastGaveThemBack) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token), kSuccess);
  Borrow(kFriend, token);
  Borrow(kFriend, token);
  pool.Return(kOwner, chunks);
  pool.Gone(kOwner);
  quota.Forget(kOwner);
  EXPECT_EQ(device.used(), 6 * kMiB);
  EXPECT_EQ(ledger->charged(5), 6 * kMiB);
  EXPECT_TRUE(Get(kFriend, {4 * kMiB}).empty());  // they still count
  EXPECT_EQ(Borrow(kFriend, token), chunks);
  for (int i = 0; i < 2; ++i) pool.Return(kFriend, chunks);
  EXPECT_EQ(device.used(), 6 * kMiB);
  pool.Return(kFriend, chunks);
  EXPECT_EQ(device.used(), 0u);
  EXPECT_EQ(ledger->charged(5), 0u);
  EXPECT_EQ(pool.leased(), 0u);
  EXPECT_TRUE(Borrow(kFriend, token).empty());
}

// A chunk that others had is not put on a shelf: they may still have it mapped.
TEST_F(SharingTest, SharedChunksGoBackToTheDriver) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token), kSuccess);
  Borrow(kFriend, token);
  pool.Gone(kFriend);
  EXPECT_EQ(device.used(), 6 * kMiB);
  pool.Return(kOwner, chunks);
  EXPECT_EQ(pool.idle(), 0u);
  EXPECT_EQ(device.used(), 0u);
}

TEST_F(SharingTest, RandomTrafficKeepsTheLedgerRight) {
  ledger->SetLimit(5, UINT64_MAX);
  unsigned random = 4321;
  auto next = [&](unsigned limit) { return (random = random * 1664525 + 1013904223) / 7 % limit; };
  std::map<uint64_t, std::multiset<uint64_t>> has = {{kOwner, {chunks.begin(), chunks.end()}}};
  std::vector<ChunkPool::Token> tokens;
  for (int i = 0; i < 3000; ++i) {
    uint64_t worker = 1 + next(2);
    std::multiset<uint64_t>& mine = has[worker];
    unsigned what = next(20);
    if (what < 5) {
      for (uint64_t chunk : Get(worker, {2 * kMiB * (1 + next(3))})) mine.insert(chunk);
    } else if (what < 8 && !mine.empty()) {
      std::vector<uint64_t> some = {*mine.begin()};
      ASSERT_EQ(pool.Share(worker, some, &tokens.emplace_back()), kSuccess);
    } else if (what < 12 && !tokens.empty()) {
      for (uint64_t chunk : Borrow(worker, tokens[next(tokens.size())])) mine.insert(chunk);
    } else if (what < 19 && !mine.empty()) {
      std::vector<uint64_t> some = {*std::prev(mine.end())};
      mine.erase(std::prev(mine.end()));
      pool.Return(worker, some);
    } else if (what == 19) {
      pool.Gone(worker);
      mine.clear();
    }
    std::set<uint64_t> all;
    for (auto& [holder, held] : has) all.insert(held.begin(), held.end());
    uint64_t bytes = 0;
    for (uint64_t chunk : all) bytes += pool.BytesOf(chunk);
    ASSERT_EQ(pool.leased(), bytes) << i;
    ASSERT_EQ(ledger->charged(5), bytes) << i;
    ASSERT_EQ(pool.leased() + pool.idle(), device.used());
  }
}

}  // namespace
}  // namespace longwire::keeper
