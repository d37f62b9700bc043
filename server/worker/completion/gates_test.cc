// Gates and budgets: what they hold back, what they let through, what the daemon learns.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11, kTwo = 12;

struct GatedSession {
  std::shared_ptr<gates::GatePage> page = gates::GatePage::Create(1);
  gates::DeviceGate& gate = page->device(0);
  TestSession session{page};

  GatedSession() {
    session.CreateStream(kOne);
    session.CreateStream(kTwo);
    session.LoadFunction();
  }
  void Close() { gate.closed = 1; }
  void Open() {
    gate.closed = 0;
    page->RingWorker();
  }
  bool Issued(const char* text) { return session.driver.IndexOf(text) >= 0; }
};

TEST(Gates, ALaunchThatIsOnlySaidToBeCapturedDoesNotPass) {
  GatedSession gated;
  gated.Close();
  uint64_t position = gated.session.Launch(kOne, 1, wire::kCapturing);
  DownRecord error = gated.session.Expect(wire::DownKind::kError, [&](const DownRecord& record) {
    return record.header.position == position;
  });
  EXPECT_EQ(error.header.code, CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_FALSE(gated.Issued("launch s1 1"));
}

TEST(Gates, AClosedGateHoldsWorkBackUntilItOpens) {
  GatedSession gated;
  gated.Close();
  uint64_t last = gated.session.Launch(kOne, 1);
  gated.session.Until([&] { return gated.gate.held == 1; }, "the launch to be held");
  EXPECT_FALSE(gated.Issued("launch s1 1"));
  gated.Open();
  gated.session.ExpectProgress(kOne, last);
  EXPECT_TRUE(gated.Issued("launch s1 1"));
}

// As where a kernel waits for what another stream does.
TEST(Gates, WhatTheBudgetHoldsBackGoesWhenNothingFinishesForLong) {
  GatedSession gated;
  gated.gate.budget_calls = 1;
  gated.session.driver.StopStream(1);
  gated.session.Launch(kOne, 1);
  gated.session.ExpectProgress(kTwo, gated.session.Launch(kTwo, 2));
  EXPECT_NE(gated.gate.held, 0u);
}

// Two threads read the same counters: neither may miss the other's change.
TEST(Gates, WhatIsQueuedWhileTheLastCallEndsIsSeen) {
  constexpr int kTimes = 100'000;
  auto page = gates::GatePage::Create(1);
  Gates gates(1);
  gates.Obey(page, [] {});
  std::atomic<int> turn{0}, ended{0};
  std::thread completion([&] {
    for (int i = 1; i <= kTimes; ++i) {
      while (turn.load() != i) std::this_thread::yield();
      gates.Finished(0, 1);
      ended = i;
    }
  });
  int unseen = 0;
  for (int i = 1; i <= kTimes; ++i) {
    gates.Queued(0, 1);
    gates.Issued(0, 1);
    turn = i;
    gates.Queued(0, 1);
    while (ended.load() != i) std::this_thread::yield();
    unseen += page->device(0).busy == 0 ? 1 : 0;
    gates.Queued(0, -1);
  }
  completion.join();
  EXPECT_EQ(unseen, 0) << "of " << kTimes;
}

// The daemon closes a gate and looks whether anything runs, the worker says that something will run
// and looks at the gate: one of them sees the other.
TEST(Gates, NothingEntersUnseenWhileTheGateCloses) {
  constexpr int kTimes = 20'000;
  auto page = gates::GatePage::Create(1);
  Gates gates(1);
  gates.Obey(page, [] {});
  gates::DeviceGate& gate = page->device(0);
  std::atomic<int> round{0}, looked{0};
  std::atomic<bool> found_running{false};
  std::thread daemon([&] {
    for (int i = 1; i <= kTimes; ++i) {
      while (round.load() != i) std::this_thread::yield();
      gate.closed.exchange(1);
      found_running = gate.running_since.load() != 0;
      looked = i;
    }
  });
  int unseen = 0;
  for (int i = 1; i <= kTimes; ++i) {
    gate.closed = 0;
    gates.Queued(0, 1);
    round = i;
    const bool entered = gates.Enters(0);
    while (looked.load() != i) std::this_thread::yield();
    unseen += entered && !found_running.load() ? 1 : 0;
    if (entered) {
      gates.Finished(0, 1);
    } else {
      gates.Queued(0, -1);
    }
  }
  daemon.join();
  EXPECT_EQ(unseen, 0) << "of " << kTimes;
}

TEST(Gates, AGateForOneCallClosesBehindIt) {
  GatedSession gated;
  gated.gate.closed = gates::kOneCall;
  gated.session.driver.StopStream(1);
  gated.session.Launch(kOne, 1);
  gated.session.Launch(kOne, 2);
  gated.session.Until([&] { return gated.gate.held != 0; }, "the second launch to be held");
  EXPECT_TRUE(gated.Issued("launch s1 1"));
  EXPECT_EQ(gated.gate.closed, gates::kCallTaken);
  gated.session.driver.RunStream(1);
  gated.session.Until([&] { return gated.gate.running_since == 0; }, "the first launch's end");
  EXPECT_FALSE(gated.Issued("launch s1 2"));
}

TEST(Gates, WhatIsNoWorkPassesAClosedGate) {
  GatedSession gated;
  gated.Close();
  calls::lwEventCreate create;
  create.event = 7;
  gated.session.Send(create);
  calls::lwEventRecord record;
  record.event = 7;
  record.version = 1;
  gated.session.ExpectProgress(kTwo, gated.session.Send(record, kTwo));
  EXPECT_EQ(gated.gate.held, 0u);
}

TEST(Gates, ABudgetOfOneCallKeepsOneInFlight) {
  GatedSession gated;
  gated.gate.budget_calls = 1;
  gated.session.driver.StopStream(1);
  gated.session.Launch(kOne, 1);
  uint64_t last = gated.session.Launch(kOne, 2);
  gated.session.Until([&] { return gated.gate.held != 0; }, "the second launch to be held");
  EXPECT_TRUE(gated.Issued("launch s1 1"));
  EXPECT_FALSE(gated.Issued("launch s1 2"));
  gated.session.driver.RunStream(1);
  gated.session.ExpectProgress(kOne, last);
}

TEST(Gates, ABudgetOfTimeLetsOneCallGoWhileNothingIsKnown) {
  GatedSession gated;
  gated.gate.budget_microseconds = 250;
  gated.session.driver.StopStream(1);
  gated.session.Launch(kOne, 1);
  gated.session.Launch(kOne, 2);
  gated.session.Until([&] { return gated.gate.held != 0; }, "the second launch to be held");
  EXPECT_FALSE(gated.Issued("launch s1 2"));
  gated.session.driver.RunStream(1);
}

TEST(Gates, TheDaemonHearsOfWorkAndOfItsEnd) {
  GatedSession gated;
  gated.gate.tell = 1;
  gated.session.driver.StopStream(1);
  uint64_t last = gated.session.Launch(kOne, 1);
  gated.session.Until([&] { return gated.gate.busy == 1; }, "busy");
  gated.session.Until([&] { return gated.gate.running_since != 0; }, "running");
  gated.session.driver.RunStream(1);
  gated.session.ExpectProgress(kOne, last);
  gated.session.Until([&] { return gated.gate.busy == 0; }, "idle");
  EXPECT_EQ(gated.gate.running_since, 0u);
  EXPECT_GT(gated.gate.gpu_time, 0u);
  EXPECT_EQ(gated.gate.calls, 1u);
}

TEST(Gates, AFailedContextsHeldWorkIsNotKeptWaiting) {
  GatedSession gated;
  gated.session.driver.StopStream(2);
  gated.session.Launch(kTwo, 1);
  gated.session.Until([&] { return gated.Issued("launch s2 1"); }, "the first launch");
  gated.Close();
  gated.session.Launch(kOne, 2);
  gated.session.Until([&] { return gated.gate.held == 1; }, "the second launch to be held");
  gated.session.driver.Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  gated.session.Expect(wire::DownKind::kError);
  gated.session.Until([&] { return gated.gate.busy == 0; }, "idle");
  EXPECT_FALSE(gated.Issued("launch s1 2"));
}

}  // namespace
}  // namespace longwire::worker::testing
