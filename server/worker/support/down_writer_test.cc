// What a stream's end brings leaves as one message.
#include "server/worker/support/down_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "wire/record.h"
#include "wire/rings/pieces.h"
#include "wire/rings/ring.h"

namespace longwire::worker {
namespace {

class DownWriterTest : public testing::Test {
 protected:
  // Bytes that the client's end sees.
  size_t Seen() { return client_.Available().size(); }

  std::shared_ptr<wire::RingMemory> memory_ = wire::RingMemory::Create(size_t{1} << 20);
  wire::RingConsumer client_{memory_};
  DownWriter writer_{memory_};
};

TEST_F(DownWriterTest, ACopyAndItsEndLeaveTogether) {
  std::vector<std::byte> bytes(4096);
  std::optional<DownWriter::Together> together(writer_);
  writer_.Data(1, 0, bytes);
  EXPECT_EQ(Seen(), 0u);
  writer_.Progress(2, 3);
  EXPECT_EQ(Seen(), 0u);
  together.reset();
  size_t both = Seen();
  EXPECT_GT(both, bytes.size());
  writer_.Progress(2, 4);
  EXPECT_GT(Seen(), both) << "by itself it leaves at once";
}

TEST_F(DownWriterTest, MuchLeavesPieceByPieceTheLastWithItsEnd) {
  std::vector<std::byte> bytes(3 * wire::LogPiece(192 << 10));
  std::optional<DownWriter::Together> together(writer_);
  writer_.Data(1, 0, bytes);
  EXPECT_GT(Seen(), bytes.size() / 3);
  EXPECT_LT(Seen(), bytes.size());
  writer_.Progress(2, 3);
  EXPECT_GT(Seen(), bytes.size()) << "more than a little waits no longer";
  size_t copy = Seen();
  together.reset();
  EXPECT_GT(Seen(), copy);
}

// Reads all records; returns their kinds in order, and the sum of credit.
std::vector<wire::DownKind> KindsIn(wire::RingConsumer& client, uint64_t* credit) {
  std::vector<wire::DownKind> kinds;
  *credit = 0;
  while (true) {
    wire::DownHeader header;
    size_t bytes = 0;
    auto log = client.Available();
    EXPECT_EQ(wire::PeekRecord(log, &header, &bytes), wire::WireResult::kOk);
    if (bytes == 0) return kinds;
    kinds.push_back(static_cast<wire::DownKind>(header.kind));
    if (kinds.back() == wire::DownKind::kCredit) {
      uint64_t one = 0;
      std::memcpy(&one, log.data() + sizeof(header), sizeof(one));
      *credit += one;
    }
    client.Advance(wire::AlignRecord(bytes));
  }
}

TEST_F(DownWriterTest, CreditLeavesWithTheNextRecord) {
  uint64_t credit = 0;
  writer_.HoldCredit(1000);
  writer_.Credit(300);
  writer_.Credit(600);
  EXPECT_EQ(Seen(), 0u);
  EXPECT_TRUE(writer_.OwesCredit());
  writer_.Progress(2, 3);
  EXPECT_EQ(KindsIn(client_, &credit),
            (std::vector{wire::DownKind::kCredit, wire::DownKind::kProgress}));
  EXPECT_EQ(credit, 900u);
  EXPECT_FALSE(writer_.OwesCredit());
  writer_.Progress(2, 4);
  EXPECT_EQ(KindsIn(client_, &credit), std::vector{wire::DownKind::kProgress}) << "paid twice";
}

TEST_F(DownWriterTest, MuchCreditLeavesAtOnce) {
  uint64_t credit = 0;
  writer_.HoldCredit(1000);
  writer_.Credit(999);
  EXPECT_EQ(Seen(), 0u);
  writer_.Credit(1);
  EXPECT_EQ(KindsIn(client_, &credit), std::vector{wire::DownKind::kCredit});
  EXPECT_EQ(credit, 1000u);
}

TEST_F(DownWriterTest, CreditIsPaidWhereNothingFollows) {
  uint64_t credit = 0;
  writer_.HoldCredit(1000);
  writer_.Credit(7);
  writer_.PayCredit();
  EXPECT_EQ(KindsIn(client_, &credit), std::vector{wire::DownKind::kCredit});
  writer_.Credit(8);
  EXPECT_TRUE(writer_.HasWrittenAll()) << "a session that moves owes nothing";
  EXPECT_EQ(KindsIn(client_, &credit), std::vector{wire::DownKind::kCredit});
  EXPECT_EQ(credit, 8u);
}

TEST_F(DownWriterTest, WithoutThatCreditLeavesAtOnce) {
  writer_.Credit(1);
  EXPECT_GT(Seen(), 0u);
}

TEST_F(DownWriterTest, CreditIsQueuedBehindWhatTheFullRingHolds) {
  std::vector<std::byte> bytes(4096);
  writer_.HoldCredit(1000);
  for (size_t i = 0; i < 500; ++i) writer_.Data(1, i, bytes);
  writer_.Credit(10);
  writer_.Progress(2, 3);
  uint64_t paid = 0;
  bool ended = false;
  while (!ended && client_.Wait({}, std::chrono::steady_clock::now() + std::chrono::seconds(5))) {
    uint64_t credit = 0;
    auto kinds = KindsIn(client_, &credit);
    paid += credit;
    ended = !kinds.empty() && kinds.back() == wire::DownKind::kProgress;
    client_.Release(client_.cursor());
    memory_->PokeProducer();
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(paid, 10u);
}

TEST_F(DownWriterTest, LastWordsLeaveBeforeTheEnd) {
  DownWriter::Together together(writer_);
  writer_.Error(1, 999, 0, 0, "the log names a call that this worker does not know");
  writer_.CloseAfterFlush(999, std::chrono::milliseconds(0));
  EXPECT_GT(Seen(), 0u);
  EXPECT_EQ(memory_->close_code(), 999u);
}

// The ring is full of what nobody reads; all of it comes when somebody does.
TEST_F(DownWriterTest, AFullRingTakesTheRestLater) {
  std::vector<std::byte> bytes(4096);
  constexpr size_t kRecords = 500;  // about twice the ring
  {
    DownWriter::Together together(writer_);
    for (size_t i = 0; i < kRecords; ++i) writer_.Data(1, i, bytes);
    writer_.Progress(2, 3);
  }
  size_t all = 0;
  while (all < kRecords * bytes.size() &&
         client_.Wait({}, std::chrono::steady_clock::now() + std::chrono::seconds(5))) {
    size_t some = Seen();
    client_.Advance(some);
    client_.Release(client_.cursor());
    memory_->PokeProducer();
    all += some;
  }
  EXPECT_GT(all, kRecords * bytes.size());
}

}  // namespace
}  // namespace longwire::worker
