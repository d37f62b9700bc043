// What a stream's end brings leaves as one message.
#include "server/worker/support/down_writer.h"

#include <gtest/gtest.h>

#include <optional>

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

TEST_F(DownWriterTest, MuchDoesNotWait) {
  std::vector<std::byte> bytes(64 << 10);
  DownWriter::Together together(writer_);
  writer_.Data(1, 0, bytes);
  EXPECT_GT(Seen(), bytes.size());
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
