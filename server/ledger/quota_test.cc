#include "server/ledger/quota.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace longwire::keeper {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(TenantLedgerTest, LimitHoldsAtTheByteOverAllDevices) {
  auto ledger = TenantLedger::Create();
  ASSERT_NE(ledger, nullptr);
  ledger->SetLimit(3, 10 * kMiB);
  EXPECT_TRUE(ledger->Charge(3, 0, 6 * kMiB));
  EXPECT_FALSE(ledger->Charge(3, 1, 4 * kMiB + 1));
  EXPECT_EQ(ledger->room(3), 4 * kMiB);
  EXPECT_TRUE(ledger->Charge(3, 1, 4 * kMiB));
  EXPECT_FALSE(ledger->Charge(3, 0, 1));
  EXPECT_TRUE(ledger->Charge(4, 0, 100 * kMiB)) << "a neighbour has its own limit";
  ledger->Refund(3, 0, 1);
  EXPECT_TRUE(ledger->Charge(3, 1, 1));
}

TEST(TenantLedgerTest, ALoweredLimitAddsNothingUntilEnoughCameBack) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(1, 8);
  EXPECT_TRUE(ledger->Charge(1, 0, 8));
  ledger->SetLimit(1, 4);
  EXPECT_EQ(ledger->room(1), 0u);
  ledger->Refund(1, 0, 3);
  EXPECT_FALSE(ledger->Charge(1, 0, 1));
  ledger->Refund(1, 0, 2);
  EXPECT_TRUE(ledger->Charge(1, 0, 1));
}

TEST(TenantLedgerTest, ADeadKeepersDeviceIsForgotten) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(1, 8);
  EXPECT_TRUE(ledger->Charge(1, 0, 5));
  EXPECT_TRUE(ledger->Charge(1, 1, 3));
  ledger->ForgetDevice(0);
  EXPECT_EQ(ledger->charged(1), 3u);
  EXPECT_TRUE(ledger->Charge(1, 1, 5));
}

TEST(TenantLedgerTest, ProcessesThatChargeAtOnceNeverExceedTheLimit) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(2, 1000);
  constexpr int kProcesses = 4;
  for (int device = 0; device < kProcesses; ++device) {
    if (fork() != 0) continue;
    auto mine = TenantLedger::Map(wire::Descriptor(fcntl(ledger->descriptor(), F_DUPFD, 0)));
    int charged = 0;
    for (int i = 0; i < 1000; ++i) charged += mine->Charge(2, device, 1) ? 1 : 0;
    _exit(charged / 10);  // exit codes are small; what all have together is looked at below
  }
  for (int i = 0; i < kProcesses; ++i) wait(nullptr);
  EXPECT_EQ(ledger->charged(2), 1000u);
}

TEST(TenantLedgerTest, SurvivesAHolderThatDies) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(2, 1 << 20);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    if (child == 0) {
      while (true) ledger->Charge(2, i, 0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(ledger->Charge(2, 0, 1));
}

TEST(QuotaTest, WorkersOfATenantShareItsLimit) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(5, 100);
  Quota quota(*ledger, 0, true);
  quota.Assign(71, 5);
  quota.Assign(72, 5);
  EXPECT_TRUE(quota.Charge(71, 60));
  EXPECT_FALSE(quota.Charge(72, 41));
  EXPECT_EQ(quota.room(72), 40u);
  EXPECT_TRUE(quota.Charge(99, 1 << 30)) << "nobody's worker has no limit";
  quota.Refund(71, 60);
  EXPECT_TRUE(quota.Charge(72, 100));
}

// The workers of one session on two devices, 71 before and 72 after the move, and a neighbour, 73.
class MovingQuotaTest : public testing::Test {
 protected:
  MovingQuotaTest() {
    ledger->SetLimit(5, 100);
    there.Assign(71, 5);
    here.Assign(72, 5);
    here.Assign(73, 5);
    EXPECT_TRUE(there.Charge(71, 80));
    ledger->BeginMove(5, {71, 0}, {72, 1});
  }
  void Switch() {
    ledger->EndMoves(71);
    there.Refund(71, 80);
    there.Forget(71);
  }

  std::unique_ptr<TenantLedger> ledger = TenantLedger::Create();
  Quota there{*ledger, 0, true}, here{*ledger, 1, true};
};

TEST_F(MovingQuotaTest, ASessionThatMovesCountsOnce) {
  EXPECT_FALSE(here.Charge(73, 21)) << "the limit holds for others meanwhile";
  EXPECT_TRUE(here.Charge(72, 60));
  EXPECT_TRUE(here.Charge(72, 20));
  EXPECT_EQ(ledger->charged(5), 80u);
  EXPECT_EQ(here.room(73), 20u);
  EXPECT_EQ(ledger->ReservedForOthers(9, 1), 0u);
  EXPECT_TRUE(here.Charge(73, 20));
  EXPECT_FALSE(here.Charge(73, 1));
  Switch();
  EXPECT_EQ(ledger->charged(5), 100u);
  EXPECT_FALSE(here.Charge(73, 1)) << "at no moment there was more room";
  EXPECT_FALSE(here.Charge(72, 1)) << "it counts as any session now";
}

TEST_F(MovingQuotaTest, ItsOldWorkersMemoryIsFreeAsItGoes) {
  EXPECT_TRUE(here.Charge(72, 80));
  ledger->EndMoves(71);
  for (int chunk = 0; chunk < 8; ++chunk) {
    there.Refund(71, 10);
    EXPECT_EQ(ledger->charged(5), 80u) << chunk;
  }
}

TEST_F(MovingQuotaTest, WhatItFreesMeanwhileIsFreeOnceBothHaveFreedIt) {
  EXPECT_TRUE(here.Charge(72, 80));
  there.Refund(71, 50);
  EXPECT_EQ(ledger->charged(5), 80u);
  here.Refund(72, 50);
  EXPECT_EQ(ledger->charged(5), 30u);
  EXPECT_TRUE(there.Charge(71, 70)) << "it goes on meanwhile";
  EXPECT_EQ(here.room(72), 70u);
  EXPECT_EQ(here.room(73), 0u);
}

TEST_F(MovingQuotaTest, AMoveThatEndsLeavesWhatWas) {
  EXPECT_TRUE(here.Charge(72, 80));
  ledger->EndMoves(72);
  here.Refund(72, 80);
  here.Forget(72);
  EXPECT_EQ(ledger->charged(5), 80u);
  EXPECT_FALSE(here.Charge(73, 21));
}

TEST_F(MovingQuotaTest, ASuccessorOfAKeeperKnowsWhoMoves) {
  EXPECT_TRUE(here.Charge(72, 80));
  Quota next(*ledger, 1, true);
  next.Assign(72, 5);
  next.SetCharged({{72, 80}});
  EXPECT_EQ(ledger->charged(5), 80u);
  ledger->EndMoves(71);
  Quota gone(*ledger, 0, true);  // its worker ended with its keeper
  gone.SetCharged({});
  EXPECT_EQ(ledger->charged(5), 80u);
  EXPECT_FALSE(next.Charge(72, 21));
}

TEST_F(MovingQuotaTest, APlaceIsUsedAgain) {
  EXPECT_TRUE(here.Charge(72, 80));
  Switch();
  for (uint64_t worker = 100; worker < 100 + 3 * TenantLedger::kMoves; ++worker) {
    there.Assign(worker, 5);
    ledger->BeginMove(5, {72, 1}, {worker, 0});
    ASSERT_TRUE(there.Charge(worker, 80));
    ledger->EndMoves(worker);
    there.Refund(worker, 80);
    there.Forget(worker);
    ASSERT_EQ(ledger->charged(5), 80u);
  }
}

TEST(QuotaTest, KnowsWhatWaitsBeyondAPartOfAPoolsLimit) {
  auto ledger = TenantLedger::Create();
  ledger->SetLimit(1, 10);
  ASSERT_TRUE(ledger->Charge(1, 0, 8));
  EXPECT_EQ(10u, ledger->ceiling(1));
  EXPECT_FALSE(ledger->Want(1, 4)) << "a limit that is no part does not grow";
  ledger->SetPool(1, 30, 5);
  EXPECT_EQ(30u, ledger->ceiling(1));
  EXPECT_EQ(2u, ledger->room(1));
  EXPECT_EQ(7u, ledger->room_with_spare(1));
  EXPECT_FALSE(ledger->Want(1, 23)) << "beyond the whole limit";
  EXPECT_TRUE(ledger->Want(1, 22));
  EXPECT_TRUE(ledger->Want(1, 4));
  EXPECT_EQ(30u, ledger->TakeWanted(1));
  EXPECT_EQ(0u, ledger->TakeWanted(1));
  EXPECT_FALSE(ledger->Charge(1, 0, 3)) << "what is wanted is not there yet";
}

}  // namespace
}  // namespace longwire::keeper
