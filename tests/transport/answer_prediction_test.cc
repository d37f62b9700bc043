#include "link/transport/answer_prediction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "link/transport/stream_pump.h"
#include "tests/transport/fake_stream.h"

namespace longwire::transport {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

class AnswerPredictionTest : public testing::Test {
 protected:
  void Heard() { answers_.Received(now_); }
  void SaidAfter(int us) {
    now_ += microseconds(us);
    answers_.Sent(now_);
  }
  bool ExpectsAfter(int us) {
    now_ += microseconds(us);
    return answers_.Expects(now_);
  }
  void Answer(int messages) {
    for (int i = 0; i < messages; ++i) {
      Heard();
      SaidAfter(5);
    }
  }

  AnswerPrediction answers_;
  Clock::time_point now_ = Clock::now();
};

TEST_F(AnswerPredictionTest, ExpectsWhatCameTwiceInARow) {
  Answer(1);
  Heard();
  EXPECT_FALSE(ExpectsAfter(1));
  SaidAfter(5);
  EXPECT_FALSE(ExpectsAfter(1)) << "it is answered";
  Heard();
  EXPECT_TRUE(ExpectsAfter(1));
}

TEST_F(AnswerPredictionTest, WaitsTwiceAsLongAsLastTime) {
  Answer(5);
  Heard();
  EXPECT_TRUE(ExpectsAfter(15));
  EXPECT_FALSE(ExpectsAfter(1));
  SaidAfter(14);  // 30 us: still soon
  Heard();
  EXPECT_TRUE(ExpectsAfter(50)) << "and not above what counts as soon";
  EXPECT_FALSE(ExpectsAfter(1));
}

TEST_F(AnswerPredictionTest, ALateAnswerCountsAsNone) {
  Answer(5);
  Heard();
  SaidAfter(51);
  Answer(1);
  Heard();
  EXPECT_FALSE(ExpectsAfter(1));
}

TEST_F(AnswerPredictionTest, AnUnansweredMessageEndsIt) {
  Answer(5);
  Heard();
  Heard();
  EXPECT_FALSE(ExpectsAfter(1));
  SaidAfter(5);
  Heard();
  EXPECT_FALSE(ExpectsAfter(1)) << "a step's last message is answered, the next one's first not";
}

// Records the pump's operations on a stream in order: reads, writes, polls that find a message (M:
// a sleep that ends with one) and polls that find nothing. At the first poll after a message that
// finds nothing, the answer is there.
class NotedStream final : public MessageStream {
 public:
  NotedStream(FakeStream& stream, std::function<void()> answer)
      : stream_(stream), answer_(std::move(answer)) {}
  void StartRead() override {
    noted_ += 'r';
    if (noted_.ends_with("mnwr")) ++after_answers_;
    stream_.StartRead();
  }
  const ReceivedFrame& received() const override { return stream_.received(); }
  std::shared_ptr<const void> KeepReceived() override { return stream_.KeepReceived(); }
  void StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                  std::shared_ptr<void> keep) override {
    noted_ += 'w';
    stream_.StartWrite(header, bytes, std::move(keep));
  }
  Event Wait(wire::Deadline deadline) override {
    Event event = stream_.Wait(deadline);
    bool looks = deadline == wire::Deadline{};
    if (event == Event::kRead) {
      noted_ += looks ? 'm' : 'M';
      unanswered_ = true;
    } else if (event == Event::kNone && looks) {
      if (noted_.back() != 'n') noted_ += 'n';
      if (std::exchange(unanswered_, false)) answer_();
    }
    return event;
  }
  void Wake() override { stream_.Wake(); }
  std::string End(bool cancel) override { return stream_.End(cancel); }
  // Reads that were asked for after an answer for which the pump had looked in vain.
  int after_answers() const { return after_answers_; }

 private:
  FakeStream& stream_;
  const std::function<void()> answer_;
  bool unanswered_ = false;
  std::string noted_ = "n";
  std::atomic<int> after_answers_{0};
};

TEST(AnswersFirst, ThePumpReadsOnAfterTheAnswer) {
  constexpr size_t kRing = 64 << 10;
  constexpr int kMaxMessages = 2000;
  auto incoming = wire::RingMemory::Create(kRing), outgoing = wire::RingMemory::Create(kRing);
  RelayEnd relay(incoming, outgoing);
  wire::RingProducer answers(outgoing);
  std::atomic<bool> answering{true};
  std::atomic<int> answered{0};
  FakeStream near, far;
  FakeStream::Join(near, far);
  NotedStream noted(near, [&] {
    if (!answering) return;
    std::memset(answers.Reserve(8), 1, 8);
    answers.Commit(8);
    ++answered;
  });
  TrafficCounters counters;
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  StreamPump pump(noted, relay, counters);
  std::thread runs([&] { pump.Run(); });

  uint64_t sent = 0;
  auto say = [&] {
    near.Inject({sent, 0, 1, 0}, "12345678");
    sent += 8;
  };
  // An answer may come late on a busy machine, and counts as none then.
  auto end = Clock::now() + std::chrono::seconds(10);
  for (int i = 0; i < kMaxMessages && noted.after_answers() == 0 && Clock::now() < end; ++i) {
    say();
    while (answered <= i && Clock::now() < end) std::this_thread::yield();
  }
  // Now two come and nobody answers.
  answering = false;
  say();
  say();
  wire::RingConsumer program(incoming);
  EXPECT_TRUE(program.WaitBeyond(sent - 1, microseconds(50), end)) << "both are heard";
  pump.Abandon();
  runs.join();
  EXPECT_GT(noted.after_answers(), 0)
      << "not once did the pump look for an answer before it read on";
}

}  // namespace
}  // namespace longwire::transport
