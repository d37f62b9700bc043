// The core under simulated loads. Time is virtual, so these bounds do not depend on the machine.
#include "scheduler/simulate/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace longwire::scheduler::simulate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Profile AlwaysAtWork(const char* tenant, uint32_t weight, Time kernel, bool varied = false) {
  Profile profile;
  profile.tenant = tenant;
  profile.weight = weight;
  profile.kernel = kernel;
  profile.varied = varied;
  return profile;
}

Profile LatencyCritical(Time think, uint32_t kernels) {
  Profile profile;
  profile.tenant = "chat";
  profile.priority_class = PriorityClass::kLatencyCritical;
  profile.think = think;
  profile.kernels = kernels;
  profile.kernel = microseconds(200);
  profile.gap = microseconds(50);
  return profile;
}

Result Simulate(const std::vector<Profile>& profiles, const char* policy, Time until,
                uint64_t seed = 1) {
  const auto chosen = MakePolicy(policy);
  return Simulation(profiles, *chosen, Options{}, seed).Run(until);
}

// The first three have weights 1, 2 and 4.
void ExpectSharesByWeight(const Result& result) {
  double all = 0;
  for (int i = 0; i < 3; ++i) all += result.tenants[i].share;
  for (int i = 0; i < 3; ++i) {
    const double due = std::exp2(i) / 7;
    EXPECT_NEAR(result.tenants[i].share / all, due, 0.03 * due) << result.tenants[i].tenant;
  }
  EXPECT_EQ(result.counters.overruns, 0U);
}

TEST(FairShares, FollowTheWeightsWhateverTheKernels) {
  const std::vector<std::vector<Profile>> loads = {
      {AlwaysAtWork("a", 1, milliseconds(1)), AlwaysAtWork("b", 2, milliseconds(7)),
       AlwaysAtWork("c", 4, milliseconds(3), true)},
      {AlwaysAtWork("a", 1, milliseconds(21)), AlwaysAtWork("b", 2, microseconds(50)),
       AlwaysAtWork("c", 4, milliseconds(2))},
      {AlwaysAtWork("a", 1, microseconds(20)), AlwaysAtWork("b", 2, milliseconds(13)),
       AlwaysAtWork("c", 4, milliseconds(21))},
  };
  for (std::vector<Profile> load : loads) {
    ExpectSharesByWeight(Simulate(load, "weighted_fair", seconds(120)));
    load.push_back(LatencyCritical(milliseconds(30), 5));
    ExpectSharesByWeight(Simulate(load, "strict_priority", seconds(120)));
  }
}

TEST(FairShares, ATenantsSessionsShareItsWeight) {
  const Result result =
      Simulate({AlwaysAtWork("a", 1, milliseconds(2)), AlwaysAtWork("b", 1, milliseconds(2)),
                AlwaysAtWork("b", 1, milliseconds(2)), AlwaysAtWork("b", 1, milliseconds(2))},
               "weighted_fair", seconds(60));
  EXPECT_NEAR(result.tenants[0].share, 0.5, 0.015);
  for (int i = 1; i < 4; ++i) EXPECT_NEAR(result.tenants[i].share, 1.0 / 6, 0.015);
}

TEST(Starvation, IsBoundedBesideASessionThatIsNeverIdle) {
  const Result result =
      Simulate({LatencyCritical(Time{0}, 10), AlwaysAtWork("a", 1, microseconds(20)),
                AlwaysAtWork("b", 1, microseconds(20))},
               "strict_priority", seconds(30));
  // Each waits for its own patience and for the other's turn; nothing here drains for long.
  EXPECT_LT(result.longest_starved, milliseconds(2 * (100 + 10) + 5));
  EXPECT_GT(result.tenants[1].requests, 100U);
  EXPECT_GT(result.tenants[2].requests, 100U);
  EXPECT_GT(result.counters.forced, 200U);
}

TEST(LatencyCriticalWait, StaysShortBesideFourTenantsThatNeverStop) {
  std::vector<Profile> load = {LatencyCritical(milliseconds(5), 5)};
  for (const char* name : {"a", "b", "c", "d"}) {
    load.push_back(AlwaysAtWork(name, 1, milliseconds(21)));
  }
  const Result held = Simulate(load, "strict_priority", seconds(60));
  const Result shared = Simulate(load, "weighted_fair", seconds(60));
  EXPECT_LT(held.wait_p99, 100) << "microseconds, for 1.25 ms of work";
  EXPECT_GT(held.latency_critical_requests, 5'000U);
  EXPECT_GT(held.busy, 0.95) << "best effort gets what is left";
  EXPECT_LE(held.wait_p99, shared.wait_p99);
}

TEST(City, AShortDayIsTheSameEachTime) {
  const auto profiles = MakePopulation(300, 8, 7);
  const Result one = Simulate(profiles, "strict_priority", seconds(300), 7);
  const Result same = Simulate(profiles, "strict_priority", seconds(300), 7);
  const Result other = Simulate(profiles, "strict_priority", seconds(300), 8);
  EXPECT_EQ(one.events, same.events);
  EXPECT_EQ(one.wait_p99, same.wait_p99);
  EXPECT_NE(one.events, other.events);
  EXPECT_LT(one.wait_p99, 500) << "microseconds";
  EXPECT_LT(one.counters.overruns, one.counters.turns / 100);
  EXPECT_LT(one.longest_starved, seconds(5));
}

}  // namespace
}  // namespace longwire::scheduler::simulate
