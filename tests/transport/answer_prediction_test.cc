#include "link/transport/answer_prediction.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "link/transport/stream_pump.h"
#include "tests/transport/fake_stream.h"

namespace longwire::transport {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

class AnswerPredictionTest : public testing::Test {
 protected:
  void Heard() { answers_.Heard(now_); }
  void SaidAfter(int us) {
    now_ += microseconds(us);
    answers_.Said(now_);
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

// Notes what the pump asks of a stream, and in which order: reads, writes, looks that find a
// message (M: a sleep that ends with one) and looks that find nothing. Counts the reads that waited
// for an answer: m, n, w, r.
class NotedStream final : public MessageStream {
 public:
  explicit NotedStream(FakeStream& stream) : stream_(stream) {}
  void StartRead() override {
    noted_ += 'r';
    if (noted_.ends_with("mnwr")) ++after_answers_;
    stream_.StartRead();
  }
  const ReceivedFrame& received() const override { return stream_.received(); }
  void StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                  std::shared_ptr<void> keep) override {
    noted_ += 'w';
    stream_.StartWrite(header, bytes, std::move(keep));
  }
  Event Wait(wire::Deadline deadline) override {
    Event event = stream_.Wait(deadline);
    bool looks = deadline == wire::Deadline{};
    if (event == Event::kRead) noted_ += looks ? 'm' : 'M';
    if (event == Event::kNone && looks && noted_.back() != 'n') noted_ += 'n';
    return event;
  }
  void Wake() override { stream_.Wake(); }
  std::string End(bool cancel) override { return stream_.End(cancel); }
  int after_answers() const { return after_answers_; }

 private:
  FakeStream& stream_;
  std::string noted_ = "n";
  std::atomic<int> after_answers_{0};
};

TEST(AnswersFirst, ThePumpReadsOnAfterTheAnswer) {
  constexpr size_t kRing = 1 << 20;  // room for all: nobody acknowledges anything
  constexpr int kMost = 50'000;
  auto incoming = wire::RingMemory::Create(kRing), outgoing = wire::RingMemory::Create(kRing);
  RelayEnd relay(incoming, outgoing);
  FakeStream near, far;
  FakeStream::Join(near, far);
  NotedStream noted(near);
  TrafficCounters counters;
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  StreamPump pump(noted, relay, counters);
  std::thread runs([&] { pump.Run(); });

  wire::RingConsumer program(incoming);
  wire::RingProducer answers(outgoing);
  uint64_t sent = 0;
  auto say = [&] {
    near.Inject({sent, 0, 1, 0}, "12345678");
    sent += 8;
  };
  auto heard = [&](uint64_t position) {
    return program.WaitBeyond(position - 1, microseconds(50),
                              Clock::now() + std::chrono::seconds(5));
  };
  bool all = true;
  // On a busy machine few answers come as soon as the ones before.
  for (int i = 0; i < kMost && noted.after_answers() == 0; ++i) {
    say();
    all = all && heard(sent);
    program.Advance(8);
    program.Release(program.cursor());
    // Time enough to look for an answer in vain, and little enough to wait for one.
    for (auto until = Clock::now() + microseconds(15); Clock::now() < until;) {
    }
    std::memset(answers.Reserve(8), 1, 8);
    answers.Commit(8);
  }
  // Now two come and nobody answers.
  say();
  say();
  all = all && heard(sent);
  pump.Abandon();
  runs.join();
  EXPECT_TRUE(all);
  EXPECT_GT(noted.after_answers(), 0)
      << "not once did the pump look for an answer before it read on";
}

}  // namespace
}  // namespace longwire::transport
