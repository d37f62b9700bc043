// Who stays awake, between the sessions' pages: the tests play the workers.
#include "server/daemon/sharing/awake_cores.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

constexpr std::chrono::milliseconds kAwake{100};
constexpr uint64_t kNanoseconds = 100'000'000;
constexpr std::chrono::hours kTurn{1};  // they end when the tests say so
const std::string kServing = "serving";

class AwakeCoresTest : public testing::Test {
 protected:
  gates::GatePage& Enter(AwakeCores& cores, uint64_t id, const std::string& tenant,
                         std::chrono::nanoseconds awake = kAwake, bool relayed = true) {
    auto page = gates::GatePage::Create(1);
    pages_[id] = page;
    grants_[id] = cores.Enter(id, {tenant, awake, relayed}, page);
    return *page;
  }
  // Each of them has done something since the last turn, and the next one begins.
  void Turn(AwakeCores& cores, const std::vector<uint64_t>& active) {
    for (uint64_t id : active) pages_[id]->device(0).calls.fetch_add(1);
    cores.Share();
  }
  bool IsAwake(uint64_t id) {
    EXPECT_EQ(pages_[id]->awake(), grants_[id]->allowed);
    return pages_[id]->awake() != 0;
  }
  uint32_t Threads() {
    uint32_t threads = 0;
    for (auto& [id, page] : pages_) threads += IsAwake(id) ? 3 : 0;
    return threads;
  }

  std::map<uint64_t, std::shared_ptr<gates::GatePage>> pages_;
  std::map<uint64_t, std::shared_ptr<AwakeGrant>> grants_;
};

TEST_F(AwakeCoresTest, OnlySessionsOfTenantsThatWantIt) {
  AwakeCores cores(16, kTurn);
  EXPECT_EQ(Enter(cores, 1, kServing).awake(), kNanoseconds);
  EXPECT_EQ(Enter(cores, 2, "batch", {}).awake(), 0u);
  EXPECT_EQ(grants_[2]->allowed, 0u);
  EXPECT_EQ(cores.cores_in_use(), 3u);
  cores.SetTenant(kServing, {});
  EXPECT_FALSE(IsAwake(1));
  cores.SetTenant("batch", kAwake);
  EXPECT_TRUE(IsAwake(2));
}

TEST_F(AwakeCoresTest, BestEffortSessionsSleepWhateverTheirTenantWants) {
  AwakeCores cores(16, kTurn);
  Enter(cores, 1, kServing);
  EXPECT_EQ(grants_[1]->wanted, kNanoseconds);
  EXPECT_TRUE(cores.SetBestEffort({kServing, "batch"}));
  EXPECT_FALSE(cores.SetBestEffort({kServing}));
  EXPECT_FALSE(IsAwake(1));
  EXPECT_EQ(grants_[1]->wanted, 0u);
  Enter(cores, 2, kServing);  // one that comes later
  EXPECT_FALSE(IsAwake(2));
  cores.SetTenant(kServing, 2 * kAwake);
  EXPECT_FALSE(IsAwake(1) || IsAwake(2));
  EXPECT_EQ(cores.cores_in_use(), 0u);
  EXPECT_TRUE(cores.SetBestEffort({}));
  EXPECT_TRUE(IsAwake(1) && IsAwake(2));
  EXPECT_EQ(grants_[2]->wanted, 2 * kNanoseconds);
}

TEST_F(AwakeCoresTest, ASessionOfThisHostTakesTwoCores) {
  AwakeCores cores(4, kTurn);
  Enter(cores, 1, kServing, kAwake, false);
  Enter(cores, 2, kServing, kAwake, false);
  EXPECT_TRUE(IsAwake(1) && IsAwake(2));
  EXPECT_EQ(cores.cores_in_use(), 4u);
}

TEST_F(AwakeCoresTest, TheBudgetIsKept) {
  AwakeCores cores(7, kTurn);
  std::vector<uint64_t> all;
  for (uint64_t id = 1; id <= 5; ++id) {
    Enter(cores, id, kServing);
    all.push_back(id);
  }
  for (int turn = 0; turn < 20; ++turn) {
    Turn(cores, all);
    EXPECT_EQ(Threads(), 6u);
    EXPECT_LE(cores.cores_in_use(), 7u);
  }
  cores.SetCores(3);
  EXPECT_EQ(Threads(), 3u);
  cores.SetCores(2);
  EXPECT_EQ(Threads(), 0u) << "half of a session's threads would be of no use";
  cores.SetCores(0);
  EXPECT_EQ(Threads(), 0u);
  cores.SetCores(15);
  EXPECT_EQ(Threads(), 15u);
}

TEST_F(AwakeCoresTest, TenantsAndThenTheirSessionsTakeTurns) {
  AwakeCores cores(3, kTurn);
  const std::vector<uint64_t> all{1, 2, 3, 4};
  for (uint64_t id : {1, 2, 3}) Enter(cores, id, "many");
  Enter(cores, 4, "one");
  std::map<uint64_t, int> turns;
  for (int turn = 0; turn < 24; ++turn) {
    Turn(cores, all);
    for (uint64_t id : all) turns[id] += IsAwake(id) ? 1 : 0;
  }
  EXPECT_EQ(turns[1] + turns[2] + turns[3] + turns[4], 24);
  EXPECT_NEAR(turns[4], 12, 1) << "half, as the other tenant";
  for (uint64_t id : {1, 2, 3}) EXPECT_NEAR(turns[id], 4, 1);
}

TEST_F(AwakeCoresTest, WhoDoesNothingWaitsBehindThoseWhoWork) {
  AwakeCores cores(3, kTurn);
  for (uint64_t id : {1, 2, 3}) Enter(cores, id, std::to_string(id));
  for (int turn = 0; turn < 5; ++turn) {
    Turn(cores, {2});
    EXPECT_TRUE(IsAwake(2));
  }
  // Who comes back shares from then on; it does not make up for its rest.
  int first = 0;
  for (int turn = 0; turn < 10; ++turn) {
    Turn(cores, {2, 3});
    first += IsAwake(3) ? 1 : 0;
    EXPECT_FALSE(IsAwake(1));
  }
  EXPECT_NEAR(first, 5, 1);
}

TEST_F(AwakeCoresTest, ATenantsSessionThatComesBackDoesNotMakeUpForItsRest) {
  AwakeCores cores(3, kTurn);
  for (uint64_t id : {1, 2}) Enter(cores, id, kServing);
  Turn(cores, {1, 2});
  Turn(cores, {1, 2});
  for (int turn = 0; turn < 10; ++turn) Turn(cores, {1});
  int back = 0;
  for (int turn = 0; turn < 10; ++turn) {
    Turn(cores, {1, 2});
    back += IsAwake(2) ? 1 : 0;
  }
  EXPECT_NEAR(back, 5, 1);
}

TEST_F(AwakeCoresTest, WhatASessionLeavesIsThereForTheNext) {
  AwakeCores cores(3, kTurn);
  Enter(cores, 1, kServing);
  Enter(cores, 2, kServing);
  EXPECT_TRUE(IsAwake(1));
  EXPECT_FALSE(IsAwake(2));
  cores.Leave(1);
  EXPECT_FALSE(IsAwake(1));
  EXPECT_TRUE(IsAwake(2));
}

TEST_F(AwakeCoresTest, SaysWhatItCosts) {
  AwakeCores cores(16, kTurn);
  auto page = gates::GatePage::Create(1);
  page->awake_spent() = 500;  // under an earlier daemon
  auto grant = cores.Enter(1, {kServing, kAwake, true}, page);
  page->awake_spent() += 20;
  grant->spent += 3;
  EXPECT_EQ(cores.Sessions()[1].spent.count(), 23);
  EXPECT_EQ(cores.Sessions()[1].wanted, kAwake);
  EXPECT_TRUE(cores.Sessions()[1].granted);
  cores.Leave(1);
  EXPECT_EQ(cores.Spent()[kServing].count(), 23);
}

}  // namespace
}  // namespace longwire::daemon
