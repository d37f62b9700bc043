// Random events, and after each of them the rules of mirror.h; now and then the question whether
// everybody who waits still gets a turn.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/simulate/random.h"
#include "scheduler/testing/mirror.h"

namespace longwire::scheduler::testing {
namespace {

using simulate::Random;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Seat = std::pair<SessionId, DeviceId>;

#if defined(__SANITIZE_ADDRESS__)
constexpr int kSteps = 50'000;  // where each step takes ten times as long
#else
constexpr int kSteps = 200'000;
#endif
constexpr int kStepsBetweenLiveness = 20'000;
constexpr size_t kMaxSessions = 24;
constexpr uint64_t kDevices = 4;
constexpr uint64_t kTenants = 8;

class Fuzz {
 public:
  Fuzz(const Policy& policy, bool by_priority, uint64_t seed)
      : random_(seed), core_(policy, Options{}), mirror_(by_priority) {}

  std::string Step() {
    if (random_.Below(3) == 0) {
      if (std::string fault = PassTime(microseconds(random_.Below(8000))); !fault.empty()) {
        return fault;
      }
    }
    return Tell(RandomEvent());
  }

  // All best-effort sessions always have work and every worker follows the decisions;
  // latency-critical sessions never go idle. Returns the sessions that have waited too long.
  std::string CheckLiveness() {
    std::set<SessionId> waiting;
    for (const auto& [id, session] : mirror_.sessions()) {
      if (mirror_.best_effort(session)) waiting.insert(id);
    }
    const Time until = now_ + std::chrono::minutes(60);
    while (!waiting.empty() && now_ < until) {
      std::vector<std::pair<Seat, Activity>> changes;
      for (const auto& [id, session] : mirror_.sessions()) {
        for (const auto& [device, decision] : session.told) {
          if (decision.open) waiting.erase(id);
          const Activity activity = decision.open ? Activity::kRunning : Activity::kQueued;
          if (activity != activities_[{id, device}]) changes.push_back({{id, device}, activity});
        }
      }
      for (const auto& [seat, activity] : changes) {
        if (std::string fault = Report(seat, activity); !fault.empty()) return fault;
      }
      if (std::string fault = PassTime(milliseconds(1)); !fault.empty()) return fault;
    }
    if (waiting.empty()) return "";
    return "session " + std::to_string(*waiting.begin()) + " waited for an hour";
  }

  Counters counters() const { return core_.snapshot().counters; }

 private:
  std::string Tell(const Event& event) {
    mirror_.Apply(event);
    const auto decisions = core_.On(now_, event);
    if (std::string fault = mirror_.Apply(decisions); !fault.empty()) return fault;
    const auto tick = core_.next_tick();
    if (tick && *tick <= now_) return "next_tick lies in the past";
    return mirror_.Check();
  }

  // With the ticks that are wanted, of which one in eight comes late.
  std::string PassTime(Time span) {
    const Time until = now_ + span;
    for (auto tick = core_.next_tick(); tick && *tick <= until; tick = core_.next_tick()) {
      now_ = random_.Below(8) == 0 ? until : *tick;
      if (std::string fault = Tell(Tick{}); !fault.empty()) return fault;
    }
    now_ = until;
    return "";
  }

  ActivityReported ReportOf(Seat seat, Activity activity) {
    activities_[seat] = activity;
    used_[seat] += microseconds(random_.Below(5000));
    return {seat.first, seat.second, activity, used_[seat]};
  }

  std::string Report(Seat seat, Activity activity) { return Tell(ReportOf(seat, activity)); }

  // Mostly one that is open.
  SessionId AnySession() {
    const auto& sessions = mirror_.sessions();
    if (sessions.empty() || random_.Below(50) == 0) return random_.Below(opened_ + 2);
    return std::next(sessions.begin(), static_cast<ptrdiff_t>(random_.Below(sessions.size())))
        ->first;
  }

  bool IsOpen(SessionId session) const { return mirror_.sessions().contains(session); }

  TenantName AnyTenant() { return "t" + std::to_string(random_.Below(kTenants)); }

  PriorityClass AnyClass() {
    return random_.Below(5) == 0 ? PriorityClass::kLatencyCritical : PriorityClass::kBestEffort;
  }

  SessionInfo AnyInfo() {
    SessionInfo info;
    info.id = ++opened_;
    info.tenant = AnyTenant();
    info.priority_class = AnyClass();
    info.weight = static_cast<uint32_t>(random_.Below(5));
    const uint64_t first = random_.Below(kDevices);
    const uint64_t count = random_.Below(3) == 0 ? random_.Between(2, kDevices) : 1;
    for (uint64_t i = 0; i < count; ++i) {
      info.devices.push_back(static_cast<DeviceId>((first + i) % kDevices));
    }
    if (random_.Below(6) == 0) info.gang = "g" + std::to_string(random_.Below(3));
    return info;
  }

  Event RandomEvent() {
    const uint64_t kind = random_.Below(100);
    const size_t open = mirror_.sessions().size();
    if (kind < 4 && open < kMaxSessions) return SessionOpened{AnyInfo()};
    if (kind < 6 || (kind < 8 && open > kMaxSessions / 2)) return SessionClosed{AnySession()};
    if (kind < 9) {
      return TenantChanged{AnyTenant(), AnyClass(), static_cast<uint32_t>(random_.Below(9))};
    }
    if (kind < 10) return GangJoined{AnySession(), AnySession()};
    const SessionId session = AnySession();
    const auto device = static_cast<DeviceId>(random_.Below(kDevices));
    if (kind < 12) return LaunchGapObserved{session, device, microseconds(random_.Below(3000))};
    auto activity = static_cast<Activity>(random_.Below(3));
    // Latency-critical sessions are idle most of the time, or hardly anybody would have a turn.
    const bool critical = IsOpen(session) && !mirror_.best_effort(mirror_.sessions().at(session));
    if (critical && random_.Below(4) != 0) activity = Activity::kIdle;
    return ReportOf({session, device}, activity);
  }

  Random random_;
  Core core_;
  Mirror mirror_;
  Time now_{0};
  SessionId opened_ = 0;
  std::map<Seat, Activity> activities_;
  std::map<Seat, Time> used_;
};

class PropertyTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PropertyTest, RandomEventsBreakNoRule) {
  const std::string name = GetParam();
  const auto policy = MakePolicy(name);
  for (uint64_t seed : {20'260'101, 1, 7, 14}) {  // the last three have found faults
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fuzz fuzz(*policy, name == "strict_priority", seed);
    for (int step = 1; step <= kSteps; ++step) {
      ASSERT_EQ(fuzz.Step(), "") << "step " << step;
      if (step % kStepsBetweenLiveness == 0) {
        ASSERT_EQ(fuzz.CheckLiveness(), "") << "step " << step;
      }
    }
    // What happened was worth watching.
    EXPECT_GT(fuzz.counters().turns, kSteps / 50U);
    EXPECT_GT(fuzz.counters().overruns, kSteps / 2000U);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PropertyTest,
                         ::testing::Values("strict_priority", "weighted_fair"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace longwire::scheduler::testing
