// One end of a connection: numbering, acknowledging, dropping duplicates, refusing gaps.
#include "link/transport/relay_end.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "wire/rings/ring_control.h"

namespace longwire::transport {
namespace {

constexpr size_t kRing = 64 << 10;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class RelayEndTest : public testing::Test {
 protected:
  RelayEndTest()
      : incoming_(wire::RingMemory::Create(kRing)),
        outgoing_(wire::RingMemory::Create(kRing)),
        relay_(incoming_, outgoing_),
        reader_(incoming_),
        writer_(outgoing_) {
    EXPECT_EQ(relay_.StartEpoch(1, 0, 0), WireResult::kOk);
  }

  void Write(const std::string& text) {
    std::byte* to = writer_.Reserve(text.size());
    ASSERT_NE(to, nullptr);
    std::memcpy(to, text.data(), text.size());
    writer_.Commit(text.size());
  }

  std::string ReadAll() {
    auto bytes = reader_.Available();
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    reader_.Advance(bytes.size());
    return text;
  }

  // A frame of the far end with `text` at `position`.
  WireResult Receive(uint64_t position, const std::string& text, uint64_t ack = 0,
                     uint32_t epoch = 1) {
    return TakeFrame(relay_, {position, ack, epoch, 0}, text);
  }

  // Cut in two, as a network may.
  static WireResult TakeFrame(RelayEnd& relay, const FrameHeader& header, const std::string& text) {
    size_t half = text.size() / 2;
    return relay.Take({header, {Bytes(text).first(half), Bytes(text).subspan(half)}, text.size()});
  }

  std::shared_ptr<wire::RingMemory> incoming_, outgoing_;
  RelayEnd relay_;
  wire::RingConsumer reader_;
  wire::RingProducer writer_;
};

TEST_F(RelayEndTest, PlacesWhatComesInOrder) {
  EXPECT_EQ(Receive(0, "one "), WireResult::kOk);
  EXPECT_EQ(Receive(4, "two"), WireResult::kOk);
  EXPECT_EQ(ReadAll(), "one two");
  EXPECT_EQ(relay_.received(), 7u);
}

TEST_F(RelayEndTest, DropsWhatCameAlready) {
  EXPECT_EQ(Receive(0, "abcd"), WireResult::kOk);
  EXPECT_EQ(Receive(0, "abcd"), WireResult::kOk);
  EXPECT_EQ(Receive(2, "cdef"), WireResult::kOk);
  EXPECT_EQ(ReadAll(), "abcdef");
}

TEST_F(RelayEndTest, DropsDuplicatesAcrossParts) {
  EXPECT_EQ(Receive(0, "abcd"), WireResult::kOk);
  EXPECT_EQ(Receive(1, "bcdef"), WireResult::kOk);
  EXPECT_EQ(Receive(0, "abcdef"), WireResult::kOk);
  EXPECT_EQ(ReadAll(), "abcdef");
}

TEST_F(RelayEndTest, AGapIsFatal) {
  EXPECT_EQ(Receive(0, "abcd"), WireResult::kOk);
  EXPECT_EQ(Receive(5, "x"), WireResult::kFatal);
  EXPECT_EQ(Receive(UINT64_MAX, "x"), WireResult::kFatal);
}

TEST_F(RelayEndTest, AnotherEpochIsFatal) {
  EXPECT_EQ(Receive(0, "x", 0, 0), WireResult::kFatal);
  EXPECT_EQ(Receive(0, "x", 0, 2), WireResult::kFatal);
}

// Also where it would fit into the ring.
TEST_F(RelayEndTest, AFrameLargerThanABatchIsFatal) {
  auto incoming = wire::RingMemory::Create(4 * wire::kMaxBatchBytes);
  RelayEnd relay(incoming, outgoing_);
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  std::string batch(wire::kMaxBatchBytes + 1, 'x');
  EXPECT_EQ(TakeFrame(relay, {0, 0, 1, 0}, batch), WireResult::kFatal);
}

TEST_F(RelayEndTest, AnAcknowledgementOfUnsentBytesIsFatal) {
  Write("abcd");
  EXPECT_EQ(Receive(0, "", 1), WireResult::kFatal);
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(Receive(0, "", 5), WireResult::kFatal);
  EXPECT_EQ(Receive(0, "", 4), WireResult::kOk);
}

TEST_F(RelayEndTest, KeepsBytesUntilAcknowledged) {
  Write("abcdefgh");
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(batch.header.position, 0u);
  EXPECT_EQ(batch.bytes.size(), 8u);
  EXPECT_EQ(writer_.released(), 0u);
  ASSERT_EQ(Receive(0, "", 5), WireResult::kOk);
  EXPECT_EQ(writer_.released(), 5u);
  EXPECT_FALSE(relay_.Next(&batch));
}

TEST_F(RelayEndTest, SendsAgainFromWhereAResumedEndIs) {
  Write("abcdefgh");
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(relay_.StartEpoch(1, 5, 5), WireResult::kFatal) << "the epoch has to rise";
  EXPECT_EQ(relay_.StartEpoch(2, 9, 9), WireResult::kFatal) << "not written yet";
  ASSERT_EQ(relay_.StartEpoch(2, 5, 5), WireResult::kOk);
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(batch.header.position, 5u);
  EXPECT_EQ(batch.header.epoch, 2u);
  EXPECT_EQ(batch.bytes.size(), 3u);
  EXPECT_EQ(relay_.StartEpoch(3, 4, 4), WireResult::kFatal) << "not kept any more";
}

TEST_F(RelayEndTest, MoreThanThereIsRoomForIsFatal) {
  EXPECT_EQ(Receive(0, std::string(kRing, 'x')), WireResult::kOk);
  EXPECT_EQ(Receive(kRing, "y"), WireResult::kFatal);
  ReadAll();
  reader_.Release(reader_.cursor());
  EXPECT_EQ(Receive(kRing, "y"), WireResult::kOk);
}

TEST_F(RelayEndTest, SendsNoMoreThanTheFarEndHasRoomFor) {
  auto large = wire::RingMemory::Create(1 << 20);
  RelayEnd relay(incoming_, large);
  wire::RingProducer writer(large);
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  relay.SetFarEnd(kRing, 100'000);
  ASSERT_NE(writer.Reserve(200'000), nullptr);
  writer.Commit(200'000);
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.bytes.size(), 100'000u);
  EXPECT_FALSE(relay.FarEndHasRoom());
  EXPECT_FALSE(relay.Next(&batch));
  ASSERT_EQ(TakeFrame(relay, {0, 30'000, 1, 0}, ""), WireResult::kOk);
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.bytes.size(), 30'000u);
  EXPECT_EQ(batch.header.position, 100'000u);
}

TEST_F(RelayEndTest, AcknowledgesEvenWhenItMaySendNothing) {
  Write(std::string(kRing, 'x'));
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  ASSERT_FALSE(relay_.FarEndHasRoom());
  EXPECT_EQ(Receive(0, std::string(kRing / 2, 'x')), WireResult::kOk);
  ReadAll();
  reader_.Release(reader_.cursor());
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(batch.header.ack, kRing / 2);
}

TEST_F(RelayEndTest, AcknowledgesByItselfEveryEighthOfTheRing) {
  RelayEnd::Batch batch;
  EXPECT_EQ(Receive(0, std::string(kRing / 8 - 1, 'x')), WireResult::kOk);
  ReadAll();
  reader_.Release(reader_.cursor());
  EXPECT_FALSE(relay_.Next(&batch));
  EXPECT_EQ(Receive(kRing / 8 - 1, "y"), WireResult::kOk);
  EXPECT_TRUE(relay_.AckMayBecomeDue());
  EXPECT_FALSE(relay_.Next(&batch)) << "not consumed yet";
  ReadAll();
  reader_.Release(reader_.cursor());
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_TRUE(batch.bytes.empty());
  EXPECT_EQ(batch.header.ack, kRing / 8);
  EXPECT_FALSE(relay_.Next(&batch));
}

TEST_F(RelayEndTest, AFrameWithoutBytesOfTheLogLeavesWhatIsDueDue) {
  relay_.SetFarEnd(kRing, kRing, 0);
  ASSERT_EQ(Receive(0, std::string(kRing / 4, 'x')), WireResult::kOk);
  ReadAll();
  reader_.Release(reader_.cursor());
  relay_.ControlHeader(kFramePong);
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(batch.header.ack, kRing / 4);
}

TEST_F(RelayEndTest, AcknowledgesOftenEnoughForAFarEndOfLessRoom) {
  auto large = wire::RingMemory::Create(8 << 20);
  RelayEnd relay(large, outgoing_);
  wire::RingConsumer reader(large);
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  relay.SetFarEnd(1 << 20, 1 << 20);
  std::string bytes(128 << 10, 'x');
  ASSERT_EQ(TakeFrame(relay, {0, 0, 1, 0}, bytes), WireResult::kOk);
  reader.Advance(bytes.size());
  reader.Release(reader.cursor());
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.header.ack, bytes.size());
}

TEST_F(RelayEndTest, WhatTheFarEndHasNotConsumedStillTakesItsRoomAfterAResume) {
  auto large = wire::RingMemory::Create(1 << 20);
  RelayEnd relay(incoming_, large);
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  relay.SetFarEnd(1 << 20, 100'000);
  wire::RingProducer writer(large);
  ASSERT_NE(writer.Reserve(500'000), nullptr);
  writer.Commit(500'000);
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.bytes.size(), 100'000u);
  // All of it has arrived; of that 30,000 bytes have been read there.
  ASSERT_EQ(relay.StartEpoch(2, 100'000, 30'000), WireResult::kOk);
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.bytes.size(), 30'000u);
  EXPECT_FALSE(relay.FarEndHasRoom());
  EXPECT_FALSE(relay.Next(&batch));
  ASSERT_EQ(TakeFrame(relay, {0, 90'000, 2, 0}, ""), WireResult::kOk);
  ASSERT_TRUE(relay.Next(&batch));
  EXPECT_EQ(batch.bytes.size(), 60'000u);
  // More than it has, and less than it has said before.
  EXPECT_EQ(relay.StartEpoch(3, 190'000, 190'001), WireResult::kFatal);
  EXPECT_EQ(relay.StartEpoch(3, 190'000, 89'999), WireResult::kFatal);
}

TEST_F(RelayEndTest, CutsBatches) {
  auto big_in = wire::RingMemory::Create(4 << 20);
  auto big_out = wire::RingMemory::Create(4 << 20);
  RelayEnd relay(big_in, big_out);
  ASSERT_EQ(relay.StartEpoch(1, 0, 0), WireResult::kOk);
  relay.SetFarEnd(4 << 20, 4 << 20);
  wire::RingProducer writer(big_out);
  ASSERT_NE(writer.Reserve(3 << 20), nullptr);
  writer.Commit((2 << 20) + 8);
  RelayEnd::Batch batch;
  for (size_t expected : {wire::kMaxBatchBytes, wire::kMaxBatchBytes, size_t{8}}) {
    ASSERT_TRUE(relay.Next(&batch));
    EXPECT_EQ(batch.bytes.size(), expected);
  }
  EXPECT_FALSE(relay.Next(&batch));
}

TEST_F(RelayEndTest, RestingAcknowledgesTheLastByteOnce) {
  EXPECT_EQ(Receive(0, "abcd"), WireResult::kOk);
  ReadAll();
  reader_.Release(3);
  RelayEnd::Batch batch;
  EXPECT_FALSE(relay_.Next(&batch)) << "far below the step";
  relay_.Rest();
  ASSERT_TRUE(relay_.Next(&batch));
  EXPECT_EQ(batch.header.ack, 3u);
  EXPECT_FALSE(relay_.Next(&batch));
  reader_.Release(4);
  EXPECT_EQ(Receive(4, "e"), WireResult::kOk);
  EXPECT_FALSE(relay_.Next(&batch)) << "it does not rest any more";
}

TEST_F(RelayEndTest, RestingTellsWhoWroteWhatTheFarEndHas) {
  std::string half(kRing / 2, 'x');
  RelayEnd::Batch batch;
  EXPECT_FALSE(relay_.WorthResting());
  for (size_t sent = half.size(); sent <= wire::kWorthGivingBack; sent += half.size()) {
    Write(half);
    ASSERT_TRUE(relay_.Next(&batch));
    ASSERT_EQ(Receive(0, "", sent - 1), WireResult::kOk);
  }
  ASSERT_TRUE(relay_.WorthResting());
  relay_.Rest();
  EXPECT_FALSE(reader_.ToldToRest()) << "a byte is kept";
  EXPECT_FALSE(writer_.GiveBack());
  ASSERT_EQ(Receive(0, "", wire::kWorthGivingBack), WireResult::kOk);
  relay_.Rest();
  EXPECT_TRUE(reader_.ToldToRest());
  EXPECT_TRUE(writer_.GiveBack());
  EXPECT_FALSE(relay_.WorthResting());
}

TEST_F(RelayEndTest, RestingGivesMemoryOfWhatWasReadBack) {
  std::string half(kRing / 2, 'x');
  for (size_t at = 0; at < wire::kWorthGivingBack; at += half.size()) {
    ASSERT_EQ(Receive(at, half), WireResult::kOk);
    EXPECT_EQ(ReadAll(), half);
    reader_.Release(reader_.cursor());
  }
  ASSERT_TRUE(relay_.WorthResting());
  std::byte* data = incoming_->data();
  EXPECT_EQ(data[0], std::byte{'x'});
  relay_.Rest();
  EXPECT_EQ(data[0], std::byte{0}) << "a new page";
  EXPECT_FALSE(relay_.WorthResting());
}

TEST_F(RelayEndTest, SurvivesAWriterThatLiesAboutItsCursor) {
  // What a hostile program could do to the shared page.
  Write("abcd");
  wire::RingConsumer other(outgoing_);
  writer_.Commit(kRing * 2);
  RelayEnd::Batch batch;
  EXPECT_FALSE(relay_.Next(&batch));
  EXPECT_TRUE(outgoing_->closed());
}

// The first was killed after a store and before the wake-up that belongs to it.
TEST_F(RelayEndTest, AnotherProcessGoesOnWhereTheFirstWas) {
  EXPECT_EQ(Receive(0, "abc"), WireResult::kOk);
  Write("defgh");
  RelayEnd::Batch batch;
  ASSERT_TRUE(relay_.Next(&batch));
  incoming_->control().producer_sleeping = 1;
  outgoing_->control().consumer_sleeping = 1;
  uint32_t pokes = incoming_->control().consumer_pokes;

  RelayEnd next(incoming_, outgoing_);
  next.Inherit(1);
  EXPECT_EQ(incoming_->control().producer_sleeping, 0u);
  EXPECT_EQ(outgoing_->control().consumer_sleeping, 0u);
  EXPECT_GT(incoming_->control().consumer_pokes, pokes) << "its reader may be asleep";
  EXPECT_EQ(next.StartEpoch(1, 3, 2), WireResult::kFatal) << "an older connection";
  ASSERT_EQ(next.StartEpoch(2, 3, 2), WireResult::kOk);
  ASSERT_TRUE(next.Next(&batch));
  EXPECT_EQ(batch.header.position, 3u);
  EXPECT_EQ(batch.bytes.size(), 2u);
  EXPECT_EQ(TakeFrame(next, {0, 5, 2, 0}, "abcd"), WireResult::kOk);
  EXPECT_EQ(ReadAll(), "abcd");
}

}  // namespace
}  // namespace longwire::transport
