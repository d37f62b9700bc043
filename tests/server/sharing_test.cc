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
  std::string sentence;
};

TEST_F(SharingTest, AFriendBorrowsTheSameChunksAndPaysNothing) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
  EXPECT_EQ(Borrow(kFriend, token), chunks);
  EXPECT_EQ(ledger->charged(5), 6 * kMiB);
  EXPECT_EQ(pool.leased(), 6 * kMiB);
  EXPECT_EQ(device.used(), 6 * kMiB);
}

TEST_F(SharingTest, TheSameChunksHaveOneTokenOthersAnother) {
  ChunkPool::Token again{}, part{};
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
  ASSERT_EQ(pool.Share(kOwner, chunks, &again, &sentence), kSuccess);
  ASSERT_EQ(pool.Share(kOwner, std::span(chunks).subspan(1), &part, &sentence), kSuccess);
  EXPECT_EQ(token, again);
  EXPECT_NE(token, part);
  EXPECT_EQ(Borrow(kFriend, part).size(), 1u);
}

TEST_F(SharingTest, OnlyTheTenantsWorkersBorrow) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
  EXPECT_TRUE(Borrow(kStranger, token).empty());
  EXPECT_TRUE(Borrow(kFriend, {token[0], token[1] ^ 1}).empty());
}

TEST_F(SharingTest, OnlyWhatAWorkerHasIsShared) {
  EXPECT_EQ(pool.Share(kStranger, chunks, &token, &sentence), kInvalidValue);
  EXPECT_EQ(pool.Share(kOwner, {}, &token, &sentence), kInvalidValue);
  chunks.push_back(4711);
  EXPECT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kInvalidValue);
}

TEST_F(SharingTest, TheBytesStayUntilTheLastGaveThemBack) {
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
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
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
  Borrow(kFriend, token);
  pool.Gone(kFriend);
  EXPECT_EQ(device.used(), 6 * kMiB);
  pool.Return(kOwner, chunks);
  EXPECT_EQ(pool.idle(), 0u);
  EXPECT_EQ(device.used(), 0u);
}

// Lists of these chunks, each another one.
std::vector<uint64_t> ListNumber(size_t number, const std::vector<uint64_t>& chunks) {
  std::vector<uint64_t> list;
  for (int bit = 0; bit < 14; ++bit) list.push_back(chunks[(number >> bit) & 1]);
  return list;
}

TEST_F(SharingTest, ASessionHasAsManyTokensAsItMayAndItsNeighbourTheirs) {
  size_t made = 0;
  while (made <= SharedChunks::kMaxTokens &&
         pool.Share(kOwner, ListNumber(made, chunks), &token, &sentence) == kSuccess) {
    ++made;
  }
  EXPECT_EQ(made, SharedChunks::kMaxTokens);
  EXPECT_NE(sentence, "");
  std::vector<uint64_t> others = Get(kStranger, {2 * kMiB});
  ASSERT_EQ(pool.Share(kStranger, others, &token, &sentence), kSuccess);
  EXPECT_EQ(Borrow(kStranger, token), others);
}

TEST_F(SharingTest, TokensThatEndMakeRoomForOthers) {
  const size_t many = SharedChunks::kMaxTokens;
  ChunkPool::Token first{};
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < many; ++i) {
      ASSERT_EQ(pool.Share(kOwner, ListNumber(i, chunks), &token, &sentence), kSuccess) << i;
      if (i == 0) first = token;
    }
    EXPECT_EQ(Borrow(kFriend, first).size(), 14u);
    pool.Return(kFriend, ListNumber(0, chunks));
    pool.Return(kOwner, chunks);
    EXPECT_TRUE(Borrow(kFriend, first).empty()) << "known though its memory is gone";
    int passes = 1;
    while (pool.Tidy(0)) ++passes;
    EXPECT_GT(passes, 10) << "all at once";
    chunks = Get(kOwner, {2 * kMiB, 4 * kMiB});
  }
}

TEST_F(SharingTest, TokensThatOutliveTheirSessionCountForWhoHasTheMemory) {
  SharedChunks shared;
  const std::vector<uint64_t> list = {7, 8};
  ASSERT_EQ(shared.Add(kOwner, list, &token, &sentence), kSuccess);
  shared.Gone(kOwner, [](uint64_t) { return kFriend; });
  EXPECT_EQ(shared.entries_of(kOwner), 0u);
  EXPECT_EQ(shared.entries_of(kFriend), 2u);
  ASSERT_NE(shared.Find(token), nullptr);
  shared.Ended(8);
  EXPECT_EQ(shared.Find(token), nullptr);
  EXPECT_EQ(shared.entries_of(kFriend), 2u) << "of what is not tidied yet";
  EXPECT_FALSE(shared.Tidy(100));
  EXPECT_EQ(shared.entries_of(kFriend), 0u);
}

TEST_F(SharingTest, WhatIsReturnedGoesInSlices) {
  ledger->SetLimit(5, UINT64_MAX);
  for (int i = 0; i < 27; ++i) chunks.push_back(Get(kOwner, {2 * kMiB}).at(0));
  ASSERT_EQ(pool.Share(kOwner, chunks, &token, &sentence), kSuccess);
  pool.Return(kOwner, chunks);
  EXPECT_GT(device.used(), 0u) << "the loop stands still for it";
  EXPECT_EQ(pool.leased(), 0u);
  EXPECT_TRUE(Borrow(kFriend, token).empty());
  EXPECT_FALSE(Get(kStranger, {60 * kMiB}).empty()) << "what goes next stands in the way";
  pool.Gone(kStranger);
  while (pool.Tidy(0)) {
  }
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
      ASSERT_EQ(pool.Share(worker, some, &tokens.emplace_back(), &sentence), kSuccess);
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
