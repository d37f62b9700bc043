#include "server/gates/gate_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "base/poll_set.h"

namespace longwire::gates {
namespace {

std::shared_ptr<GatePage> OtherEnd(GatePage& page) {
  return GatePage::Map(wire::Descriptor(fcntl(page.memory_descriptor(), F_DUPFD_CLOEXEC, 0)),
                       wire::Descriptor(fcntl(page.bell_descriptor(), F_DUPFD_CLOEXEC, 0)));
}

bool Rung(const GatePage& page) {
  return base::PollOne(page.bell_descriptor(), POLLIN, std::chrono::milliseconds(0)) != 0;
}

TEST(GatePageTest, BothEndsSeeTheSameGates) {
  auto page = GatePage::Create(3);
  ASSERT_NE(page, nullptr);
  auto other = OtherEnd(*page);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->devices(), 3u);
  page->device(2).closed = 1;
  other->device(2).busy = 1;
  EXPECT_EQ(other->device(2).closed, 1u);
  EXPECT_EQ(page->device(2).busy, 1u);
  EXPECT_EQ(page->device(1).busy, 0u);
  other->calls(28).fetch_add(2);
  EXPECT_EQ(page->calls(28), 2u);
  EXPECT_EQ(page->calls(kMaxCalls - 1), 0u);
}

TEST(GatePageTest, AChangeWakesTheWorker) {
  auto page = GatePage::Create(1);
  auto other = OtherEnd(*page);
  uint32_t seen = other->WaitForChange(0);
  std::thread daemon([&] {
    page->device(0).closed = 1;
    page->RingWorker();
  });
  EXPECT_EQ(other->WaitForChange(seen), seen + 1);
  EXPECT_EQ(other->device(0).closed, 1u);
  daemon.join();
}

TEST(GatePageTest, TheDaemonKnowsWhetherAWorkerHasHeard) {
  auto page = GatePage::Create(1);
  auto other = OtherEnd(*page);
  page->RingWorker();
  EXPECT_TRUE(page->Heard()) << "it never said that it hears";
  uint32_t seen = other->WaitForChange(0);
  std::thread worker([&] { other->WaitForChange(other->WaitForChange(seen)); });
  while (!page->Heard()) std::this_thread::yield();
  page->RingWorker();
  while (!page->Heard()) std::this_thread::yield();
  other->Close();  // its worker hears nothing more
  worker.join();
  page->RingWorker();
  EXPECT_FALSE(page->Heard());
}

TEST(GatePageTest, CloseEndsTheWait) {
  auto page = GatePage::Create(1);
  uint32_t seen = page->WaitForChange(0);
  std::thread closer([&] { page->Close(); });
  page->WaitForChange(seen);
  EXPECT_TRUE(page->closed());
  closer.join();
}

TEST(GatePageTest, TheBellIsQuietOnceAnswered) {
  auto page = GatePage::Create(1);
  auto other = OtherEnd(*page);
  EXPECT_FALSE(Rung(*page));
  other->RingDaemon();
  other->RingDaemon();
  EXPECT_TRUE(Rung(*page));
  page->Answer();
  EXPECT_FALSE(Rung(*page));
}

TEST(GatePageTest, RefusesWhatIsNoPage) {
  EXPECT_EQ(GatePage::Create(0), nullptr);
  EXPECT_EQ(GatePage::Create(kMaxDevices + 1), nullptr);
  // Right in size but not sealed: the other side could cut it short under a reader.
  int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, 16384), 0);
  EXPECT_EQ(GatePage::Map(wire::Descriptor(unsealed), wire::Descriptor()), nullptr);
}

TEST(GatePageTest, LatenciesAreCountedApartFromCallsAndFromEachOther) {
  auto page = GatePage::Create(2);
  ASSERT_NE(page, nullptr);
  for (uint32_t call = 0; call < kMaxCalls; ++call) page->calls(call) = 7;
  page->Count(Latency::kRoundTrip, 10'000);          // the first bound
  page->Count(Latency::kRoundTrip, 10'001);          // beyond it
  page->Count(Latency::kLaunchToStart, UINT64_MAX);  // beyond all
  LatencyCounts trips = page->Counts(Latency::kRoundTrip);
  EXPECT_EQ(trips.counts[0], 1u);
  EXPECT_EQ(trips.counts[1], 1u);
  EXPECT_EQ(trips.nanoseconds, 20'001u);
  EXPECT_EQ(page->Counts(Latency::kLaunchToStart).counts.back(), 1u);
  EXPECT_EQ(page->Counts(Latency::kQueueing).nanoseconds, 0u);
  AllLatencies sums{};
  page->AddLatencies(&sums);
  page->AddLatencies(&sums);
  EXPECT_EQ(sums[static_cast<size_t>(Latency::kRoundTrip)].counts[1], 2u);
  for (uint32_t call = 0; call < kMaxCalls; ++call) ASSERT_EQ(page->calls(call).load(), 7u);
  EXPECT_EQ(page->device(0).closed.load(), 0u);
}

TEST(GatePageTest, GpuTimeCountsWhatStillRuns) {
  DeviceGate gate;
  gate.gpu_time = 100;
  EXPECT_EQ(GpuTime(gate, 1000), 100u);
  gate.running_since = 700;
  EXPECT_EQ(GpuTime(gate, 1000), 400u);
  EXPECT_EQ(GpuTime(gate, 600), 100u);  // read just before it began
}

}  // namespace
}  // namespace longwire::gates
