// The scheduler's thread between sessions' pages: the tests play the workers.
#include "server/daemon/sessions/scheduling.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

namespace longwire::daemon {
namespace {

using scheduler::PriorityClass;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};

class SchedulingTest : public testing::Test {
 protected:
  // The worker's end of a new session's page.
  std::shared_ptr<gates::GatePage> Open(Scheduling& scheduling, uint64_t id, const char* tenant,
                                        PriorityClass priority_class,
                                        std::vector<scheduler::DeviceId> devices = {0}) {
    scheduler::SessionInfo info;
    info.id = id;
    info.tenant = tenant;
    info.priority_class = priority_class;
    info.devices = std::move(devices);
    auto page = scheduling.Open(info);
    EXPECT_NE(page, nullptr);
    return gates::GatePage::Map(
        wire::Descriptor(fcntl(page->memory_descriptor(), F_DUPFD_CLOEXEC, 0)),
        wire::Descriptor(fcntl(page->bell_descriptor(), F_DUPFD_CLOEXEC, 0)));
  }

  static void Work(gates::GatePage& page, bool running, uint32_t device = 0) {
    gates::DeviceGate& gate = page.device(device);
    uint64_t now = gates::Nanoseconds();
    if (!running) gate.gpu_time.fetch_add(now - gate.running_since.load());
    gate.running_since = running ? now : 0;
    gate.busy = running ? 1 : 0;
    if (gate.tell.load() != 0) page.RingDaemon();
  }

  // What was in flight has ended, more waits behind the gate.
  static void Drain(gates::GatePage& page) {
    page.device(0).running_since = 0;
    page.RingDaemon();
  }

  static bool Until(const std::function<bool()>& done) {
    auto deadline = steady_clock::now() + kPatience;
    while (!done() && steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return done();
  }
};

TEST_F(SchedulingTest, ASessionAloneIsOpenAndNobodyAsksItToTell) {
  Scheduling scheduling({});
  auto alone = Open(scheduling, 1, "a", PriorityClass::kBestEffort);
  EXPECT_EQ(alone->device(0).closed, 0u);
  EXPECT_EQ(alone->device(0).tell, 0u);
}

TEST_F(SchedulingTest, LatencyCriticalWorkClosesTheOthersGate) {
  Scheduling scheduling({});
  auto batch = Open(scheduling, 1, "batch", PriorityClass::kBestEffort);
  auto serving = Open(scheduling, 2, "serving", PriorityClass::kLatencyCritical);
  Work(*batch, true);
  Work(*serving, true);
  EXPECT_TRUE(Until([&] { return batch->device(0).closed == 1; }));
  EXPECT_EQ(serving->device(0).closed, 0u);
  Drain(*batch);
  Work(*serving, false);
  EXPECT_TRUE(Until([&] { return batch->device(0).closed == 0; }));
  EXPECT_NE(batch->device(0).budget_calls, 0u) << "beside a latency-critical session";
  EXPECT_EQ(batch->device(0).time_slice, 50u);
}

TEST_F(SchedulingTest, TheLastLatencyCriticalSessionsEndFreesTheOthers) {
  Scheduling scheduling({});
  auto batch = Open(scheduling, 1, "batch", PriorityClass::kBestEffort);
  auto serving = Open(scheduling, 2, "serving", PriorityClass::kLatencyCritical);
  Work(*serving, true);
  scheduling.Close(2);
  EXPECT_TRUE(Until([&] {
    const gates::DeviceGate& gate = batch->device(0);
    return gate.closed == 0 && gate.budget_calls == 0 && gate.time_slice == 0 && gate.tell == 0;
  }));
}

TEST_F(SchedulingTest, AChangedTenantIsHeldBackAtOnce) {
  Scheduling scheduling({});
  auto one = Open(scheduling, 1, "one", PriorityClass::kBestEffort);
  auto two = Open(scheduling, 2, "two", PriorityClass::kBestEffort);
  Work(*one, true);
  EXPECT_EQ(two->device(0).closed, 0u);
  scheduling.ChangeTenant("one", PriorityClass::kLatencyCritical, 1);
  EXPECT_TRUE(Until([&] { return two->device(0).closed == 1; }));
}

TEST_F(SchedulingTest, TermsAreThoseOfTenantsWithSessionsAndTold) {
  std::atomic<int> told{0};
  Scheduling scheduling({}, [&told] { ++told; });
  EXPECT_TRUE(scheduling.Terms().empty());
  auto one = Open(scheduling, 1, "one", PriorityClass::kBestEffort);
  EXPECT_TRUE(Until([&] { return told == 1; }));
  auto again = Open(scheduling, 2, "one", PriorityClass::kBestEffort);
  scheduling.ChangeTenant("one", PriorityClass::kLatencyCritical, 7);
  EXPECT_TRUE(Until([&] { return told == 2; }));
  const std::map<std::string, scheduler::TenantTerms> expected = {
      {"one", {PriorityClass::kLatencyCritical, 7}}};
  EXPECT_EQ(scheduling.Terms(), expected);
  EXPECT_TRUE(scheduling.BestEffort().empty());
  scheduling.Close(1);
  EXPECT_EQ(scheduling.Terms(), expected);
  scheduling.Close(2);
  EXPECT_TRUE(scheduling.Terms().empty());
  EXPECT_TRUE(Until([&] { return told == 3; }));
}

TEST_F(SchedulingTest, SwitchedOffItClosesNothing) {
  SchedulingOptions off;
  off.enabled = false;
  Scheduling scheduling(off);
  auto batch = Open(scheduling, 1, "batch", PriorityClass::kBestEffort);
  auto serving = Open(scheduling, 2, "serving", PriorityClass::kLatencyCritical);
  Work(*serving, true);
  EXPECT_EQ(batch->device(0).closed, 0u);
  EXPECT_EQ(serving->device(0).tell, 0u);
}

TEST_F(SchedulingTest, SessionsThatRunAtOnceShareTheTime) {
  Scheduling scheduling({});
  auto one = Open(scheduling, 1, "one", PriorityClass::kBestEffort);
  // Time is divided from the last update on, which was when the second session came.
  auto begin = steady_clock::now();
  auto two = Open(scheduling, 2, "two", PriorityClass::kBestEffort);
  Work(*one, true);
  Work(*two, true);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto times = scheduling.GpuTimes();
  auto passed = steady_clock::now() - begin;
  EXPECT_GT(times["one"].count(), 0);
  EXPECT_GT(times["two"].count(), 0);
  EXPECT_LE(times["one"] + times["two"], passed);
}

TEST_F(SchedulingTest, ADeviceIsBusyAlsoWhenItsSessionIsAlone) {
  Scheduling scheduling({});
  auto alone = Open(scheduling, 1, "a", PriorityClass::kBestEffort);
  EXPECT_EQ(scheduling.BusyDevices()[0], 0);
  Work(*alone, true);
  EXPECT_TRUE(Until([&] { return scheduling.BusyDevices()[0] > 0.9; }));
  Work(*alone, false);
  EXPECT_TRUE(Until([&] { return scheduling.BusyDevices()[0] < 0.1; })) << "two seconds later";
}

TEST_F(SchedulingTest, AChangedPolicyIsInForceAtOnce) {
  Scheduling scheduling({});
  auto one = Open(scheduling, 1, "one", PriorityClass::kBestEffort);
  auto two = Open(scheduling, 2, "two", PriorityClass::kBestEffort);
  Work(*one, true);
  Work(*two, true);
  SchedulingOptions fair;
  fair.policy = "weighted_fair";
  scheduling.Change(fair);
  EXPECT_EQ(scheduling.options().policy, "weighted_fair");
  EXPECT_TRUE(Until([&] { return one->device(0).closed != two->device(0).closed; }));
  SchedulingOptions off = fair;
  off.enabled = false;
  scheduling.Change(off);
  EXPECT_TRUE(one->device(0).closed == 0 && two->device(0).closed == 0);
  EXPECT_EQ(one->device(0).budget_calls, 0u);
  EXPECT_EQ(one->device(0).tell, 0u);
  scheduling.Change(fair);
  EXPECT_TRUE(Until([&] { return one->device(0).closed != two->device(0).closed; }));
}

// The second and the third are of one tenant: turns of their own, until they are linked.
TEST_F(SchedulingTest, LinkedSessionsMoveTogether) {
  SchedulingOptions fair;
  fair.policy = "weighted_fair";
  Scheduling scheduling(fair);
  auto other = Open(scheduling, 1, "other", PriorityClass::kBestEffort);
  auto one = Open(scheduling, 2, "job", PriorityClass::kBestEffort);
  auto two = Open(scheduling, 3, "job", PriorityClass::kBestEffort);
  for (const auto& page : {other, one, two}) Work(*page, true);
  auto open = [](const auto& page) { return page->device(0).closed.load() == gates::kOpen; };
  scheduling.Join(2, 3);
  for (int turn = 0; turn < 3; ++turn) {
    // What runs ends when its turn is over; each has more to do.
    EXPECT_TRUE(Until([&] {
      for (const auto& page : {other, one, two}) {
        if (!open(page)) Drain(*page);
      }
      return open(one) && open(two) && !open(other);
    }));
    EXPECT_TRUE(Until([&] {
      for (const auto& page : {other, one, two}) {
        if (!open(page)) Drain(*page);
      }
      return open(other) && !open(one) && !open(two);
    }));
  }
}

// It is held back on both of its devices while another has the one that they share.
TEST_F(SchedulingTest, AGangAsksForItsTurnsFromDevicesThatItHasToItself) {
  SchedulingOptions fair;
  fair.policy = "weighted_fair";
  Scheduling scheduling(fair);
  auto wide = Open(scheduling, 1, "wide", PriorityClass::kBestEffort, {0, 1});
  EXPECT_EQ(wide->device(1).tell, 0u) << "it is alone";
  auto other = Open(scheduling, 2, "other", PriorityClass::kBestEffort);
  Work(*other, true);
  EXPECT_TRUE(Until([&] { return wide->device(1).closed != gates::kOpen; }));
  // It waits behind the gate.
  wide->device(1).busy = 1;
  if (wide->device(1).tell.load() != 0) wide->RingDaemon();
  EXPECT_TRUE(Until([&] {
    if (other->device(0).closed != gates::kOpen) Drain(*other);
    return wide->device(1).closed == gates::kOpen;
  }));
  scheduling.Close(2);
  EXPECT_TRUE(Until([&] { return wide->device(1).tell == 0u; }));
}

// Hears as a worker does, in a thread of its own, until it is stopped.
class Hearing {
 public:
  explicit Hearing(std::shared_ptr<gates::GatePage> page) : page_(std::move(page)) {
    thread_ = std::thread([this] {
      for (uint32_t seen = 0; !page_->closed();) seen = page_->WaitForChange(seen);
    });
  }
  ~Hearing() {
    page_->Close();
    thread_.join();
  }

 private:
  std::shared_ptr<gates::GatePage> page_;
  std::thread thread_;
};

TEST_F(SchedulingTest, AStoppedWorkerLosesItsTurns) {
  SchedulingOptions fair;
  fair.policy = "weighted_fair";
  fair.times.drain_lengths = 10'000;
  Scheduling scheduling(fair);
  auto stopped = Open(scheduling, 1, "stopped", PriorityClass::kBestEffort);
  auto other = Open(scheduling, 2, "other", PriorityClass::kBestEffort);
  Hearing hears(other);
  // It says what it has heard when it waits again, and then is heard no more.
  const uint32_t seen = stopped->WaitForChange(0);
  stopped->RingWorker();
  EXPECT_NE(stopped->WaitForChange(seen), seen);
  Work(*stopped, true);
  Work(*other, true);
  // Nobody says that the stopped one's work has drained.
  EXPECT_TRUE(Until([&] { return other->device(0).closed == 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(other->device(0).closed, 0u);
  EXPECT_EQ(stopped->device(0).closed, 1u);
  auto before = scheduling.GpuTimes();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  auto after = scheduling.GpuTimes();
  EXPECT_EQ(before["stopped"], after["stopped"]) << "it is not charged";
  EXPECT_GT(after["other"], before["other"]);
}

}  // namespace
}  // namespace longwire::daemon
