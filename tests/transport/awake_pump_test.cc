// A pump that stays awake after a message. Whether it sleeps is seen on its ring: its second thread
// sleeps there while Run's thread sleeps in the connection.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "link/transport/stream_pump.h"
#include "tests/transport/fake_stream.h"
#include "wire/rings/ring_control.h"

namespace longwire::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kRing = 64 << 10;
constexpr uint64_t kForLong = 3'600'000'000'000;  // nanoseconds

class AwakePumpTest : public testing::Test {
 protected:
  void Start(std::function<bool()> has_spare = {}) {
    FakeStream::Join(stream_, far_);
    ASSERT_EQ(relay_.StartEpoch(1, 0, 0), WireResult::kOk);
    pump_.StayAwake(&allowed_, &spent_, warmth_, std::move(has_spare));
    thread_ = std::thread([this] { pump_.Run(); });
  }
  void TearDown() override {
    pump_.Abandon();
    thread_.join();
  }
  void Send() {
    wire::RingProducer ring(outgoing_);
    ASSERT_NE(ring.Reserve(8), nullptr);
    std::memset(ring.Reserve(8), 1, 8);
    ring.Commit(8);
  }
  bool Sleeps() { return outgoing_->control().consumer_sleeping.load() != 0; }
  static bool Until(const std::function<bool()>& done) {
    const auto end = Clock::now() + seconds(20);
    while (!done() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    return done();
  }

  std::shared_ptr<wire::RingMemory> incoming_ = wire::RingMemory::Create(kRing);
  std::shared_ptr<wire::RingMemory> outgoing_ = wire::RingMemory::Create(kRing);
  RelayEnd relay_{incoming_, outgoing_};
  TrafficCounters counters_;
  FakeStream stream_, far_;
  std::atomic<uint64_t> allowed_{0}, spent_{0};
  StreamPump::Warmth warmth_ = StreamPump::Warmth::kAnswers;
  StreamPump pump_{stream_, relay_, counters_};
  std::thread thread_;
};

TEST_F(AwakePumpTest, SleepsAfterAMessageAsEver) {
  Start();
  Send();
  EXPECT_TRUE(Until([&] { return Sleeps(); }));
  EXPECT_EQ(spent_, 0u);
}

TEST_F(AwakePumpTest, DoesNotSleepWithinTheTimeAndDoesAfterwards) {
  allowed_ = kForLong;
  Start();
  // It may have slept before the first message.
  Send();
  ASSERT_TRUE(Until([&] { return counters_.messages_out >= 1 && spent_ > 0; }));
  const auto end = Clock::now() + milliseconds(200);
  while (Clock::now() < end) {
    EXPECT_FALSE(Sleeps());
    std::this_thread::sleep_for(milliseconds(1));
  }
  allowed_ = 1'000'000;  // which is over
  EXPECT_TRUE(Until([&] { return Sleeps(); }));
}

TEST_F(AwakePumpTest, SleepsWhereTheHostHasNoCoresToSpare) {
  allowed_ = kForLong;
  Start([] { return false; });
  Send();
  EXPECT_TRUE(Until([&] { return Sleeps(); }));
}

// An acknowledgement alone, as an end sends that keeps the way warm.
FrameHeader Empty() { return {0, 0, 1, 0}; }

TEST_F(AwakePumpTest, KeepsTheWayWarmWhileTheFarEndAnswers) {
  warmth_ = StreamPump::Warmth::kAsks;
  allowed_ = kForLong;
  Start();
  Send();
  ASSERT_TRUE(Until([&] { return counters_.messages_out >= 2; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(counters_.messages_out, 2u) << "who does not answer is asked again";
  stream_.Inject(Empty(), "");
  EXPECT_TRUE(Until([&] { return counters_.messages_out >= 3; }));
}

TEST_F(AwakePumpTest, AnswersWhoKeepsTheWayWarmWhileItIsAwake) {
  allowed_ = kForLong;
  Start();
  Send();
  ASSERT_TRUE(Until([&] { return counters_.messages_out >= 1; }));
  stream_.Inject(Empty(), "");
  EXPECT_TRUE(Until([&] { return counters_.messages_out >= 2; }));
}

TEST_F(AwakePumpTest, WhatKeepsTheWayWarmKeepsNobodyAwake) {
  allowed_ = 100'000'000;  // nanoseconds
  Start();
  Send();
  const auto end = Clock::now() + seconds(20);
  while (!Sleeps() && Clock::now() < end) {
    stream_.Inject(Empty(), "");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(Sleeps());
}

}  // namespace
}  // namespace longwire::transport
