#include "policy/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "policy/advised.h"
#include "policy/testing/load.h"
#include "scheduler/core.h"

namespace longwire::policy::testing {
namespace {

using scheduler::Activity;
using scheduler::Core;
using scheduler::Decision;
using scheduler::Time;
using std::chrono::milliseconds;

std::shared_ptr<Program> MustLoad(const std::string& name) {
  std::string sentence;
  auto program = TryLoad(name, &sentence);
  EXPECT_NE(nullptr, program) << sentence;
  return program;
}

std::unique_ptr<scheduler::Policy> Advise(const std::shared_ptr<Program>& program) {
  return MakeAdvised(scheduler::MakePolicy("strict_priority"), program);
}

scheduler::SessionOpened Open(uint64_t id, const std::string& tenant, uint32_t weight = 1) {
  return {{id, tenant, scheduler::PriorityClass::kBestEffort, weight, {0}, ""}};
}

TEST(ProgramTest, HooksAreMachineCodeAndAnswer) {
  auto program = MustLoad("favourite");
  EXPECT_TRUE(program->is_compiled());
  program->maps().Find("ranks")->Set(scheduler::NumberOf("research"), 5);
  lw_turn turn{};
  turn.tenant = scheduler::NumberOf("research");
  ASSERT_TRUE(program->Ask(Hook::kTurnNext, &turn));
  EXPECT_EQ(5u, turn.score);
  ASSERT_TRUE(program->Ask(Hook::kTurnEnded, &turn));
  ASSERT_TRUE(program->Ask(Hook::kTurnEnded, &turn));
  EXPECT_EQ(2u, program->maps().Find("turns")->Get(turn.tenant));
  lw_place place{};
  EXPECT_FALSE(program->Ask(Hook::kPlace, &place)) << "it does not have this hook";
}

TEST(ProgramTest, SlowOneIsEnded) {
  auto program = MustLoad("slow");
  std::string told;
  program->set_on_end([&](const std::string& why) { told = why; });
  lw_turn turn{};
  for (int i = 0; i < 100 && !program->ended(); ++i) program->Ask(Hook::kTurnNext, &turn);
  ASSERT_TRUE(program->ended());
  EXPECT_NE(std::string::npos, told.find("ask takes")) << told;
  EXPECT_EQ(told, program->why_ended());
  EXPECT_FALSE(program->Ask(Hook::kTurnNext, &turn));
}

// One run of a hundred, and the others are fast: three of those are enough.
TEST(ProgramTest, NowAndThenSlowOneIsEnded) {
  auto program = MustLoad("now_and_then_slow");
  lw_turn turn{};
  int runs = 0;
  for (; runs < 2000 && !program->ended(); ++runs) program->Ask(Hook::kTurnNext, &turn);
  ASSERT_TRUE(program->ended());
  EXPECT_GE(runs, 300) << "of which the first two were slow at most: " << program->why_ended();
  EXPECT_NE(std::string::npos, program->why_ended().find("ask takes")) << program->why_ended();
  EXPECT_GT(program->longest(), kLongestRun);
}

TEST(WatchTest, SlowRunsThatAreFarApartAreForgotten) {
  const auto minute = static_cast<uint64_t>(kForgottenAfter * TicksPerNanosecond()) + 1;
  Watch watch;
  EXPECT_FALSE(watch.suspects());
  watch.Suspect(1, 1);
  EXPECT_TRUE(watch.suspects());
  uint64_t run = 1, counter = 1;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(
        watch.IsTooMuch(kLongestRun + 1, run += kForgottenAfterRuns + 1, counter += minute));
  }
  EXPECT_FALSE(watch.IsTooMuch(kLongestRun + 1, run += 1, counter += minute)) << "few runs";
  EXPECT_TRUE(watch.IsTooMuch(kLongestRun + 1, run += kForgottenAfterRuns + 1, counter + 1))
      << "little time";
}

TEST(WatchTest, SuspicionGoesWhenAllHasBeenFastForLong) {
  const auto minute = static_cast<uint64_t>(kForgottenAfter * TicksPerNanosecond()) + 1;
  Watch watch;
  watch.Suspect(1, 1);
  EXPECT_FALSE(watch.IsTooMuch(5, 2, 2 + minute));
  EXPECT_TRUE(watch.suspects()) << "it has run once since";
  EXPECT_FALSE(watch.IsTooMuch(5, 2 + kForgottenAfterRuns, 2 + minute));
  EXPECT_FALSE(watch.suspects());
}

// The scheduler and the placement ask on threads of their own, the command line on another.
TEST(ProgramTest, ManyThreadsAskAtOnceAndOneEndsIt) {
  auto program = MustLoad("favourite");
  std::atomic<int> told{0};
  program->set_on_end([&](const std::string&) { ++told; });
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      lw_turn turn{};
      turn.tenant = thread;
      while (!program->ended()) program->Ask(Hook::kTurnEnded, &turn);
      program->Refuse(Hook::kTurnEnded, "all do");
    });
  }
  Map* turns = program->maps().Find("turns");
  while (turns->Entries().size() < 3) std::this_thread::yield();
  program->Refuse(Hook::kTurnNext, "the test ends it");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(1, told);
  EXPECT_NE(std::string::npos, program->why_ended().find("the test ends it"))
      << program->why_ended();
}

TEST(ProgramTest, NonsenseEndsItAndTheBuiltInPolicyDecides) {
  auto program = MustLoad("nonsense");
  auto policy = Advise(program);
  scheduler::DeviceSnapshot snapshot;
  snapshot.latency_critical = 1;
  snapshot.best_effort = 1;
  const scheduler::Regime built_in = scheduler::MakePolicy("strict_priority")->Decide(snapshot);
  EXPECT_EQ(built_in, policy->Decide(snapshot));
  EXPECT_TRUE(program->ended());
  EXPECT_NE(std::string::npos, program->why_ended().find("share answered nonsense: turns"))
      << program->why_ended();
}

TEST(ProgramTest, WeightOfNothingIsNonsense) {
  auto program = MustLoad("nonsense");
  auto policy = Advise(program);
  scheduler::SessionTerms terms{66, 1, 1, scheduler::PriorityClass::kBestEffort, 3};
  policy->advice()->OnOpened(Time{0}, &terms);
  EXPECT_EQ(3u, terms.weight);
  EXPECT_NE(std::string::npos, program->why_ended().find("weight of 0")) << program->why_ended();
}

TEST(AdviceTest, SessionsGetTheTermsThatThePolicySays) {
  auto program = MustLoad("terms");
  auto policy = Advise(program);
  Core core(*policy, {});
  program->maps().Find("terms")->Set(scheduler::NumberOf("urgent"), 1);
  program->maps().Find("terms")->Set(scheduler::NumberOf("heavy"), 40);
  core.On(Time{0}, Open(1, "urgent"));
  core.On(Time{0}, Open(2, "heavy", 2));
  core.On(Time{0}, Open(3, "usual", 7));
  using scheduler::PriorityClass;
  const auto class_of = [&core](const char* tenant) {
    return core.TermsOf(tenant).value().priority_class;
  };
  EXPECT_EQ(PriorityClass::kLatencyCritical, class_of("urgent"));
  EXPECT_EQ(PriorityClass::kBestEffort, class_of("heavy"));
  const auto tenants = core.snapshot().tenants;
  ASSERT_EQ(3u, tenants.size());
  EXPECT_EQ(40u, tenants[0].weight);
  EXPECT_EQ(7u, tenants[2].weight);

  core.On(milliseconds(1), scheduler::ActivityReported{2, 0, Activity::kQueued, Time{0}});
  EXPECT_EQ(1u, program->maps().Find("busy")->Get(2));
  core.On(milliseconds(2), scheduler::ActivityReported{2, 0, Activity::kIdle, Time{0}});
  EXPECT_EQ(0u, program->maps().Find("busy")->Get(2));
  core.On(milliseconds(3), scheduler::SessionClosed{3});
  EXPECT_EQ(1u, program->maps().Find("closed")->Get(0));
  // The configuration is read again: the policy is asked again.
  core.On(milliseconds(4), scheduler::TenantChanged{"heavy", {}, 2});
  EXPECT_EQ(40u, core.snapshot().tenants[0].weight);
}

// Runs sessions that always have work for `length`; each one's turns by its session.
std::map<uint64_t, int> CountTurns(Core& core, std::vector<uint64_t> sessions, Time length,
                                   Time* longest_pause) {
  std::map<uint64_t, int> turns;
  std::map<uint64_t, Time> last, used, opened;
  std::map<uint64_t, bool> open;
  Time now{0};
  auto take = [&](const std::vector<Decision>& decisions, auto&& take) -> void {
    for (const Decision& decision : decisions) {
      const uint64_t id = decision.session;
      const bool was_open = std::exchange(open[id], decision.open);
      if (decision.open && !was_open) {
        ++turns[id];
        if (id != sessions.front()) *longest_pause = std::max(*longest_pause, now - last[id]);
        opened[id] = now;
      } else if (!decision.open && was_open) {
        last[id] = now;
        used[id] += now - opened[id];
        take(core.On(now, scheduler::ActivityReported{id, 0, Activity::kQueued, used[id]}), take);
      }
    }
  };
  for (uint64_t id : sessions) {
    take(core.On(now, scheduler::ActivityReported{id, 0, Activity::kQueued, Time{0}}), take);
  }
  while (now < length) {
    const auto tick = core.next_tick();
    now = tick && *tick <= now + milliseconds(1) ? *tick : now + milliseconds(1);
    take(core.On(now, scheduler::Tick{}), take);
  }
  return turns;
}

TEST(AdviceTest, AFavouriteHasMostTurnsAndNobodyStarves) {
  auto program = MustLoad("greedy");
  program->maps().Find("favourite")->Set(0, scheduler::NumberOf("first"));
  auto policy = Advise(program);
  Core core(*policy, {});
  core.On(Time{0}, Open(1, "first"));
  core.On(Time{0}, Open(2, "second"));
  core.On(Time{0}, Open(3, "third"));
  Time longest_pause{0};
  auto turns = CountTurns(core, {1, 2, 3}, std::chrono::seconds(10), &longest_pause);
  EXPECT_GT(turns[1], 3 * (turns[2] + turns[3]));
  EXPECT_GT(turns[2], 20);
  EXPECT_GT(turns[3], 20);
  EXPECT_LT(longest_pause, milliseconds(150));
  EXPECT_FALSE(program->ended()) << program->why_ended();
}

TEST(AdviceTest, TurnsLastAsLongAsThePolicySays) {
  auto program = MustLoad("favourite");
  program->maps().Find("ranks")->Set(scheduler::NumberOf("first"), 1);
  auto policy = Advise(program);
  Core core(*policy, {});
  core.On(Time{0}, Open(1, "first"));
  core.On(Time{0}, Open(2, "second"));
  core.On(Time{0}, scheduler::ActivityReported{1, 0, Activity::kQueued, Time{0}});
  core.On(Time{0}, scheduler::ActivityReported{2, 0, Activity::kQueued, Time{0}});
  ASSERT_TRUE(core.next_tick());
  EXPECT_EQ(milliseconds(20), *core.next_tick()) << "twice scheduler.turn";
}

}  // namespace
}  // namespace longwire::policy::testing
