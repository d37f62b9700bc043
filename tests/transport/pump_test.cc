// Two pumps joined by a connection in memory: program | pump = pump | worker.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "link/transport/codes.h"
#include "link/transport/stream_pump.h"
#include "tests/transport/fake_stream.h"

namespace longwire::transport {
namespace {

using Outcome = StreamPump::Outcome;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kRing = 64 << 10;

struct End {
  std::shared_ptr<wire::RingMemory> incoming = wire::RingMemory::Create(kRing);
  std::shared_ptr<wire::RingMemory> outgoing = wire::RingMemory::Create(kRing);
  RelayEnd relay{incoming, outgoing};
  TrafficCounters counters;
  std::unique_ptr<FakeStream> stream;
  std::unique_ptr<StreamPump> pump;
  std::thread thread;
  Outcome outcome{};
  std::function<void(const Terms&)> on_terms;

  void Start(uint32_t epoch, uint64_t position) {
    ASSERT_EQ(relay.StartEpoch(epoch, position, position), WireResult::kOk);
    pump = std::make_unique<StreamPump>(*stream, relay, counters);
    pump->set_on_terms(on_terms);
    thread = std::thread([this] { outcome = pump->Run(); });
  }
  Outcome Join() {
    thread.join();
    stream->End(false);
    return outcome;
  }
};

class PumpTest : public testing::Test {
 protected:
  void Connect(uint32_t epoch, uint64_t up = 0, uint64_t down = 0) {
    near_.stream = std::make_unique<FakeStream>();
    far_.stream = std::make_unique<FakeStream>();
    FakeStream::Join(*near_.stream, *far_.stream);
    near_.Start(epoch, up);
    far_.Start(epoch, down);
  }
  void TearDown() override {
    for (End* end : {&near_, &far_}) {
      if (end->pump && end->thread.joinable()) {
        end->pump->Abandon();
        end->Join();
      }
    }
  }

  void MoveMuchBothWays();
  void PackBothWays(uint32_t codec);
  void CloseBehindAHangingWrite(milliseconds before);

  End near_, far_;
};

bool Write(wire::RingProducer& ring, const std::string& text) {
  if (!ring.WaitForSpace(text.size(), Clock::now() + seconds(5))) return false;
  std::memcpy(ring.Reserve(text.size()), text.data(), text.size());
  ring.Commit(text.size());
  return true;
}

// Reads `bytes` bytes, releasing as it goes.
std::string Read(wire::RingConsumer& ring, size_t bytes) {
  std::string text;
  while (text.size() < bytes && ring.Wait({}, Clock::now() + seconds(5))) {
    auto part = ring.Available();
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
    ring.Advance(part.size());
    ring.Release(ring.cursor());
  }
  return text;
}

TEST_F(PumpTest, CarriesBytesBothWays) {
  Connect(1);
  wire::RingProducer up(near_.outgoing), down(far_.outgoing);
  wire::RingConsumer worker(far_.incoming), program(near_.incoming);
  for (int i = 0; i < 100; ++i) {
    std::string call = "call " + std::to_string(i), reply = "reply " + std::to_string(i);
    ASSERT_TRUE(Write(up, call));
    ASSERT_EQ(Read(worker, call.size()), call);
    ASSERT_TRUE(Write(down, reply));
    ASSERT_EQ(Read(program, reply.size()), reply);
    // Sometimes long enough that both pumps sleep.
    if (i % 20 == 0) std::this_thread::sleep_for(milliseconds(3));
  }
}

// Both ends send 4 MiB at once, which get smaller when they are packed.
void PumpTest::MoveMuchBothWays() {
  constexpr size_t kTotal = 4 << 20;
  auto produce = [](std::shared_ptr<wire::RingMemory> memory, unsigned seed) {
    wire::RingProducer ring(std::move(memory));
    std::minstd_rand random(seed);
    for (size_t sent = 0; sent < kTotal;) {
      size_t bytes = std::min<size_t>(1 + random() % 9000, kTotal - sent);
      std::string part(bytes, '\0');
      for (size_t i = 0; i < bytes; ++i) part[i] = static_cast<char>((sent + i) * 31 >> 3);
      if (!Write(ring, part)) return false;
      sent += bytes;
    }
    return true;
  };
  auto consume = [](std::shared_ptr<wire::RingMemory> memory) {
    wire::RingConsumer ring(std::move(memory));
    std::string all = Read(ring, kTotal);
    size_t wrong = all.size() == kTotal ? 0 : 1;
    for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != static_cast<char>(i * 31 >> 3);
    return wrong;
  };
  size_t wrong_up = 1, wrong_down = 1;
  std::thread worker([&] { wrong_up = consume(far_.incoming); });
  std::thread program([&] { wrong_down = consume(near_.incoming); });
  std::thread down([&] { EXPECT_TRUE(produce(far_.outgoing, 2)); });
  EXPECT_TRUE(produce(near_.outgoing, 1));
  worker.join();
  program.join();
  down.join();
  EXPECT_EQ(wrong_up, 0u);
  EXPECT_EQ(wrong_down, 0u);
}

TEST_F(PumpTest, MovesMoreThanTheRingsHoldInBothDirectionsAtOnce) {
  Connect(1);
  MoveMuchBothWays();
  EXPECT_EQ(near_.counters.saved.load() + far_.counters.saved.load(), 0u);
}

void PumpTest::PackBothWays(uint32_t codec) {
  near_.relay.SetFarEnd(kRing, kRing, codec | kPackAlways);
  far_.relay.SetFarEnd(kRing, kRing, codec | kPackAlways);
  Connect(1);
  MoveMuchBothWays();
  EXPECT_GT(near_.counters.saved.load(), size_t{1} << 20);
  // The log's bytes, however they came.
  EXPECT_EQ(near_.counters.bytes_out.load(), far_.counters.bytes_in.load());
  EXPECT_EQ(near_.counters.bytes_out.load(), size_t{4} << 20);
}

TEST_F(PumpTest, PacksWithLz4) { PackBothWays(kPackLz4); }

TEST_F(PumpTest, PacksWithZstd) { PackBothWays(kPackZstd); }

TEST_F(PumpTest, APackedMessageThatNobodyAgreedOnEndsTheSession) {
  near_.relay.SetFarEnd(kRing, kRing, kPackLz4 | kPackAlways);
  Connect(1);
  wire::RingProducer up(near_.outgoing);
  ASSERT_TRUE(Write(up, std::string(kRing / 2, 'x')));
  EXPECT_EQ(far_.Join(), Outcome::kViolation);
  EXPECT_EQ(far_.pump->closed().sentence, "a packed message arrived that cannot be unpacked");
}

TEST_F(PumpTest, TermsHoldFromWhereTheyAreTold) {
  std::atomic<uint32_t> heard{0};
  near_.on_terms = [&](const Terms& terms) {
    near_.relay.ChangePacking(terms.packing);
    heard.store(terms.resume_grace_milliseconds);
  };
  auto tell = [&](uint32_t grace, uint32_t packing) {
    far_.pump->ChangeTerms({grace, packing});
    auto end = Clock::now() + seconds(20);
    while (heard.load() != grace && Clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(heard.load(), grace);
  };
  auto saved = [&] { return near_.counters.saved.load() + far_.counters.saved.load(); };
  Connect(1);
  MoveMuchBothWays();
  EXPECT_EQ(saved(), 0u);
  tell(1, kPackLz4 | kPackAlways);
  MoveMuchBothWays();
  EXPECT_GT(saved(), size_t{1} << 20);
  // What is on its way when they change is taken as it is.
  std::thread changing([&] {
    for (uint32_t i = 0; i < 50; ++i) tell(10 + i, i % 2 == 0 ? 0 : kPackZstd | kPackAlways);
  });
  MoveMuchBothWays();
  changing.join();
  tell(2, 0);
  size_t before = saved();
  MoveMuchBothWays();
  EXPECT_EQ(saved(), before);
}

TEST_F(PumpTest, AnEndThatHearsNoTermsTakesThemForAMistake) {
  Connect(1);
  far_.pump->ChangeTerms({1, 0});
  EXPECT_EQ(near_.Join(), Outcome::kViolation);
}

TEST_F(PumpTest, AcknowledgesWithoutTrafficInTheOtherDirection) {
  Connect(1);
  wire::RingProducer up(near_.outgoing);
  wire::RingConsumer worker(far_.incoming);
  ASSERT_TRUE(Write(up, std::string(kRing, 'x')));
  ASSERT_EQ(Read(worker, kRing).size(), kRing);
  // Room comes back although the worker never says a word.
  EXPECT_TRUE(up.WaitForSpace(kRing / 2, Clock::now() + seconds(5)));
}

TEST_F(PumpTest, BothEndsGiveMemoryBackWhenNothingMoves) {
  Connect(1);
  wire::RingProducer up(near_.outgoing);
  wire::RingConsumer worker(far_.incoming), program(near_.incoming);
  std::string piece(kRing / 2, 'x');
  for (size_t moved = 0; moved < wire::kWorthGivingBack; moved += piece.size()) {
    ASSERT_TRUE(Write(up, piece));
    ASSERT_EQ(Read(worker, piece.size()), piece);
  }
  // The far end's, and the program's, which is asked to rest when all of it has arrived.
  EXPECT_FALSE(program.Wait({}, Clock::now() + seconds(10)));
  ASSERT_TRUE(program.ToldToRest());
  EXPECT_TRUE(up.GiveBack());
  auto given_back = [&] { return far_.incoming->data()[0] == std::byte{0}; };
  for (int i = 0; i < 5000 && !given_back(); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(given_back());
  uint64_t messages = far_.counters.messages_out.load();
  std::this_thread::sleep_for(milliseconds(1200));
  EXPECT_EQ(far_.counters.messages_out.load(), messages) << "at rest nothing is said";
  ASSERT_TRUE(Write(up, "and on"));
  EXPECT_EQ(Read(worker, 6), "and on");
}

TEST_F(PumpTest, MemoryThatIsReadLateIsGivenBackToo) {
  Connect(1);
  wire::RingProducer up(near_.outgoing);
  wire::RingConsumer worker(far_.incoming);
  std::string piece(kRing / 2, 'x');
  for (size_t moved = 0; moved < wire::kWorthGivingBack; moved += piece.size()) {
    ASSERT_TRUE(Write(up, piece));
    ASSERT_EQ(Read(worker, piece.size()), piece);
  }
  ASSERT_TRUE(Write(up, "last"));
  ASSERT_TRUE(worker.Wait({}, Clock::now() + seconds(5)));
  worker.Advance(4);
  std::this_thread::sleep_for(milliseconds(1500));  // the end rests meanwhile
  EXPECT_EQ(far_.incoming->data()[100], std::byte{'x'});
  worker.Release(worker.cursor());
  auto given_back = [&] { return far_.incoming->data()[100] == std::byte{0}; };
  for (int i = 0; i < 5000 && !given_back(); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(given_back());
}

TEST_F(PumpTest, KeepsWhatTheWorkerHasNotConsumed) {
  Connect(1);
  wire::RingProducer up(near_.outgoing);
  wire::RingConsumer worker(far_.incoming);
  ASSERT_TRUE(Write(up, "abcd"));
  ASSERT_TRUE(worker.Wait({}, Clock::now() + seconds(5)));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(up.released(), 0u);
}

TEST_F(PumpTest, StopDeliversWhatIsInTheRingAndTheReason) {
  Connect(1);
  wire::RingProducer down(far_.outgoing);
  wire::RingConsumer program(near_.incoming);
  ASSERT_TRUE(Write(down, "last words"));
  far_.pump->Stop({719, "its worker ended"});
  EXPECT_EQ(far_.Join(), Outcome::kStopped);
  EXPECT_EQ(near_.Join(), Outcome::kPeerClosed);
  EXPECT_EQ(near_.pump->closed().code, 719u);
  EXPECT_EQ(near_.pump->closed().sentence, "its worker ended");
  EXPECT_EQ(Read(program, 10), "last words");
}

TEST_F(PumpTest, AClosedRingEndsTheSessionWithItsCode) {
  Connect(1);
  std::this_thread::sleep_for(milliseconds(5));
  far_.outgoing->Close(700);
  EXPECT_EQ(far_.Join(), Outcome::kStopped);
  EXPECT_EQ(near_.Join(), Outcome::kPeerClosed);
  EXPECT_EQ(near_.pump->closed().code, 700u);
}

// Whichever of the pump's threads has written, both sleep behind it.
void PumpTest::CloseBehindAHangingWrite(milliseconds before) {
  Connect(1);
  std::this_thread::sleep_for(before);
  far_.stream->HoldWrites(true);
  wire::RingProducer down(far_.outgoing);
  ASSERT_TRUE(Write(down, "stuck"));
  std::this_thread::sleep_for(milliseconds(50));
  far_.outgoing->Close(700);
  EXPECT_EQ(far_.Join(), Outcome::kStopped);
}

TEST_F(PumpTest, ARingThatIsClosedBehindAHangingWriteEndsIt) {
  CloseBehindAHangingWrite(milliseconds(0));
}

TEST_F(PumpTest, ARingThatIsClosedBehindTheSleepersHangingWriteEndsIt) {
  CloseBehindAHangingWrite(milliseconds(50));
}

TEST_F(PumpTest, StopDoesNotWaitForAPeerThatTakesNothing) {
  Connect(1);
  far_.stream->HoldWrites(true);
  wire::RingProducer down(far_.outgoing);
  ASSERT_TRUE(Write(down, "stuck"));
  auto start = Clock::now();
  far_.pump->Stop({});
  EXPECT_EQ(far_.Join(), Outcome::kStopped);
  EXPECT_LT(Clock::now() - start, milliseconds(1800));
}

TEST_F(PumpTest, ABrokenConnectionIsToldByBothEnds) {
  Connect(1);
  std::this_thread::sleep_for(milliseconds(2));
  near_.stream->Cut();
  EXPECT_EQ(near_.Join(), Outcome::kBroken);
  EXPECT_EQ(far_.Join(), Outcome::kBroken);
}

TEST_F(PumpTest, ResumesWithNothingLostAndNothingTwice) {
  wire::RingProducer up(near_.outgoing);
  wire::RingConsumer worker(far_.incoming);
  std::string sent, got;
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    Connect(epoch, far_.relay.received(), near_.relay.received());
    for (int i = 0; i < 20; ++i) {
      std::string part = std::to_string(epoch) + "/" + std::to_string(i) + ";";
      ASSERT_TRUE(Write(up, part));
      sent += part;
    }
    got += Read(worker, epoch % 3 == 0 ? 1 : 0);
    near_.stream->Cut();
    near_.Join();
    far_.Join();
  }
  Connect(21, far_.relay.received(), near_.relay.received());
  got += Read(worker, sent.size() - got.size());
  EXPECT_EQ(got, sent);
}

TEST_F(PumpTest, ProtocolViolationsEndIt) {
  struct {
    FrameHeader header;
    std::string body;
  } const frames[] = {
      {{8, 0, 1, 0}, "gap"},           {{0, 0, 2, 0}, "epoch"},
      {{0, 1, 1, 0}, "ack"},           {{0, 0, 1, 1u << 31}, "flags"},
      {{0, 0, 1, kFrameClosed}, "x"},  {{0, 0, 1, kFrameClosed | kFramePing}, ""},
      {{0, 0, 1, kFrameAttach}, "xx"},
  };
  for (const auto& frame : frames) {
    far_.stream = std::make_unique<FakeStream>();
    FakeStream peer;
    FakeStream::Join(*far_.stream, peer);
    far_.stream->Inject(frame.header, frame.body);
    End fresh;
    fresh.stream = std::move(far_.stream);
    fresh.Start(1, 0);
    EXPECT_EQ(fresh.Join(), Outcome::kViolation) << frame.body;
    EXPECT_FALSE(fresh.pump->closed().sentence.empty());
    EXPECT_EQ(fresh.relay.received(), 0u);
  }
}

TEST_F(PumpTest, AnswersPings) {
  FakeStream peer;
  End end;
  end.stream = std::make_unique<FakeStream>();
  FakeStream::Join(*end.stream, peer);
  end.Start(1, 0);
  peer.StartWrite({0, 0, 1, kFramePing}, std::as_bytes(std::span("hello", 5)), nullptr);
  peer.StartRead();
  MessageStream::Event event = MessageStream::Event::kNone;
  while (event != MessageStream::Event::kRead) {
    event = peer.Wait(Clock::now() + seconds(5));
    ASSERT_NE(event, MessageStream::Event::kNone);
  }
  EXPECT_EQ(peer.received().header.flags, kFramePong);
  EXPECT_EQ(ControlBody(peer.received()), "hello");
  end.pump->Abandon();
  EXPECT_EQ(end.Join(), Outcome::kBroken);
}

}  // namespace
}  // namespace longwire::transport
