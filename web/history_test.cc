// What the history keeps, what it tells, and that it stays within its budget.
#include "web/history.h"

#include <gmock/gmock.h>

#include "web/crowd.h"

namespace longwire::web {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr uint64_t kGiB = 1ULL << 30;
constexpr int64_t kStart = 1'800'000'000;  // a minute's begin

bool All(const std::string&) { return true; }

transport::InspectReply OneSession(uint64_t memory, double gpu_seconds, double uptime) {
  Crowd crowd(1, 1);
  transport::InspectReply reply = crowd.Reply(0);
  reply.mutable_daemon()->set_uptime_seconds(uptime);
  reply.mutable_devices(0)->set_total(16 * kGiB);
  reply.mutable_devices(0)->set_leased(memory);
  reply.mutable_sessions(0)->mutable_memory(0)->set_leased(memory);
  reply.mutable_sessions(0)->mutable_seats(0)->set_gpu_seconds(gpu_seconds);
  return reply;
}

TEST(HistoryTest, TellsWhatWas) {
  History history;
  const auto first = OneSession(4 * kGiB, 10, 100), second = OneSession(8 * kGiB, 10.5, 101);
  history.Add(kStart, nullptr, first);
  history.Add(kStart + 1, &first, second);
  const History::Columns columns = history.Read(0, kStart, kStart + 3, 1, 10, All);
  EXPECT_THAT(columns.known, ElementsAre(true, true, false));
  EXPECT_NEAR(static_cast<double>(columns.leased[1]), 8.0 * kGiB, 1e6);
  ASSERT_THAT(columns.sessions, SizeIs(1));
  EXPECT_NEAR(static_cast<double>(columns.sessions[0].memory[0]), 4.0 * kGiB, 1e6);
  EXPECT_NEAR(static_cast<double>(columns.sessions[0].memory[1]), 8.0 * kGiB, 1e6);
  EXPECT_NEAR(columns.sessions[0].gpu[1], 0.5, 0.01);
  EXPECT_EQ(columns.sessions[0].gpu[0], 0);
}

TEST(HistoryTest, AColumnOfSecondsHasTheMostMemory) {
  History history;
  for (int i = 0; i < 10; ++i) {
    history.Add(kStart + i, nullptr, OneSession(i == 3 ? 12 * kGiB : kGiB, 0, 100 + i));
  }
  const History::Columns columns = history.Read(0, kStart, kStart + 10, 5, 10, All);
  ASSERT_THAT(columns.known, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(columns.sessions[0].memory[0]), 12.0 * kGiB, 1e6);
  EXPECT_NEAR(static_cast<double>(columns.sessions[0].memory[1]), 1.0 * kGiB, 1e6);
}

TEST(HistoryTest, WhatIsThereAtAllIsNotNothing) {
  History history;
  history.Add(kStart, nullptr, OneSession(1, 0, 1));
  EXPECT_GT(history.Read(0, kStart, kStart + 1, 1, 10, All).leased[0], 0u);
}

TEST(HistoryTest, SessionsOfOthersAreNotShown) {
  History history;
  Crowd crowd(1, 10);
  history.Add(kStart, nullptr, crowd.Reply(0));
  const History::Columns columns =
      history.Read(0, kStart, kStart + 1, 1, 100,
                   [](const std::string& tenant) { return tenant == "tenant-1"; });
  ASSERT_THAT(columns.sessions, SizeIs(1));
  EXPECT_EQ(columns.sessions[0].session.tenant, "tenant-1");
  EXPECT_GT(columns.leased[0], columns.sessions[0].memory[0]);
}

TEST(HistoryTest, ASessionsNumberMayComeAgain) {
  History history;
  transport::InspectReply reply = OneSession(kGiB, 0, 1);
  history.Add(kStart, nullptr, reply);
  reply.mutable_sessions(0)->set_program("/another");
  history.Add(kStart + 1, nullptr, reply);
  const auto columns = history.Read(0, kStart, kStart + 2, 1, 10, All);
  ASSERT_THAT(columns.sessions, SizeIs(2));
  EXPECT_NE(columns.sessions[0].session.program, columns.sessions[1].session.program);
}

TEST(HistoryTest, ForgetsWhatIsOlderThanAnHour) {
  History history;
  for (int i = 0; i < 3 * 3600; i += 20) {
    history.Add(kStart + i, nullptr, OneSession(kGiB, 0, 1 + i));
  }
  EXPECT_GE(history.begin(), history.end() - 3660);
  EXPECT_LE(history.begin(), history.end() - 3540);
}

TEST(HistoryTest, WhatIsBeyondTheBudgetIsForgottenFirst) {
  constexpr size_t kBudget = 1 << 20;
  History history(kBudget);
  Crowd crowd(4, 200);
  for (int i = 0; i < 3600; i += 10) {
    history.Add(kStart + i, nullptr, crowd.Reply(i));
    ASSERT_LE(history.bytes(), kBudget);
  }
  EXPECT_GT(history.begin(), history.end() - 3600);
  EXPECT_LT(history.begin(), history.end() - 60);
}

// Each second has sessions that no other has.
TEST(HistoryTest, SessionsThatComeAndGoAreBounded) {
  constexpr size_t kBudget = 1 << 20;
  History history(kBudget);
  for (int i = 0; i < 600; ++i) {
    Crowd crowd(1, 200, 1000 * i);
    history.Add(kStart + i, nullptr, crowd.Reply(i));
    ASSERT_LE(history.bytes(), 2 * kBudget);
  }
  EXPECT_GT(history.left_out(), 0u);
}

}  // namespace
}  // namespace longwire::web
