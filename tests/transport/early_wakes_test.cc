// What is sent after a rest finds the thread that awaits the answer awake.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "link/transport/stream_pump.h"
#include "tests/transport/fake_stream.h"

namespace longwire::transport {
namespace {

using Clock = std::chrono::steady_clock;
using Spinning = StreamPump::Spinning;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kRing = 64 << 10;
constexpr milliseconds kRest{100};  // a thread spins for a millisecond at most

// A pump whose far end is the test.
class RestedPump {
 public:
  explicit RestedPump(Spinning spinning) {
    FakeStream::Join(stream_, far_);
    EXPECT_EQ(relay_.StartEpoch(1, 0, 0), WireResult::kOk);
    pump_ = std::make_unique<StreamPump>(stream_, relay_, counters_, spinning);
    thread_ = std::thread([this] { pump_->Run(); });
    far_.StartRead();
    std::this_thread::sleep_for(kRest);
  }
  ~RestedPump() {
    pump_->Abandon();
    thread_.join();
    stream_.End(false);
  }
  // How often the connection's thread has been woken when the far end has a call of the program.
  int WakesForACall() {
    wire::RingProducer ring(outgoing_);
    std::memcpy(ring.Reserve(4), "call", 4);
    ring.Commit(4);
    EXPECT_EQ(far_.Wait(Clock::now() + seconds(5)), MessageStream::Event::kRead);
    for (auto end = Clock::now() + kRest; stream_.wakes() == 0 && Clock::now() < end;) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return stream_.wakes();
  }

 private:
  std::shared_ptr<wire::RingMemory> incoming_ = wire::RingMemory::Create(kRing);
  std::shared_ptr<wire::RingMemory> outgoing_ = wire::RingMemory::Create(kRing);
  RelayEnd relay_{incoming_, outgoing_};
  TrafficCounters counters_;
  FakeStream stream_, far_;
  std::unique_ptr<StreamPump> pump_;
  std::thread thread_;
};

TEST(EarlyWakes, WhoAwaitsTheAnswerIsWokenWithTheCall) {
  EXPECT_EQ(RestedPump(Spinning::kYes).WakesForACall(), 1);
}

// It would sleep again at once.
TEST(EarlyWakes, WhoDoesNotSpinIsNotWoken) {
  EXPECT_EQ(RestedPump(Spinning::kNo).WakesForACall(), 0);
}

}  // namespace
}  // namespace longwire::transport
