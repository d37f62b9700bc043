// What a daemon leaves to the next one: the record with its descriptors, and the lanes' notes.
#include "server/daemon/sessions/session_record.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

std::vector<wire::Descriptor> Files(size_t count) {
  std::vector<wire::Descriptor> files(count);
  for (wire::Descriptor& file : files) file = wire::MakeSegment("test", 4096);
  return files;
}

TEST(SessionRecord, ComesBackWithItsDescriptors) {
  SessionRecord record;
  record.program = "train";
  record.identity = "alice";
  record.lanes = 3;
  record.scheduled = record.limited = true;
  record.slot = 7;
  auto files = Files(1 + 2 + 1 + 4);
  const int notes = files[0].get(), bell = files[2].get(), last = files[7].get();
  SessionRecord read;
  KeptDescriptors kept;
  ASSERT_TRUE(Decode(Encode(record), &read));
  ASSERT_TRUE(Distribute(read, std::move(files), &kept));
  EXPECT_EQ(read.program, "train");
  EXPECT_EQ(read.identity, "alice");
  EXPECT_EQ(read.slot, 7u);
  EXPECT_EQ(kept.notes.get(), notes);
  EXPECT_EQ(kept.bell.get(), bell);
  EXPECT_FALSE(kept.client.valid());
  ASSERT_EQ(kept.rings.size(), 4u);
  EXPECT_EQ(kept.rings.back().get(), last);
}

TEST(SessionRecord, KnowsWhatTheSessionDidInOtherWorkers) {
  SessionRecord record, read;
  record.lanes = 1;
  record.claim = record.program_id = "";
  record.claimed_bytes = record.time_limit = 0;
  record.formerly = {41};
  record.alone = 0;
  record.earlier = 5;
  record.earlier_up = 6;
  record.earlier_down = 7;
  ASSERT_TRUE(Decode(Encode(record), &read));
  EXPECT_EQ(read.formerly, record.formerly);
  EXPECT_EQ(read.earlier, 5u);
  EXPECT_EQ(read.earlier_up, 6u);
  EXPECT_EQ(read.earlier_down, 7u);
}

TEST(SessionRecord, NeedsExactlyItsDescriptors) {
  SessionRecord record, read;
  record.lanes = 1;
  record.local = record.shares_memory = true;
  for (size_t count : {1, 2, 3}) {
    KeptDescriptors kept;
    EXPECT_EQ(Distribute(record, Files(count), &kept), count == 2) << count;
  }
  EXPECT_FALSE(Decode(Encode(record).substr(1), &read));
  EXPECT_FALSE(Decode("", &read)) << "nothing was left";
}

TEST(LaneNotes, TheNextDaemonReadsWhatWasWrittenLast) {
  auto mine = LaneNotes::Create();
  ASSERT_NE(mine, nullptr);
  LaneNote note;
  for (uint32_t epoch : {1, 2, 3}) {
    note.epoch = epoch;
    note.token.fill(static_cast<unsigned char>(epoch));
    mine->Write(0, note);
    mine->Write(16, {.epoch = 10 * epoch});
    auto next = LaneNotes::Map(wire::Duplicate(mine->descriptor()));
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->Read(0).epoch, epoch);
    EXPECT_EQ(next->Read(0).token, note.token);
    EXPECT_EQ(next->Read(16).epoch, 10 * epoch);
    EXPECT_EQ(next->Read(1).epoch, 0u);
  }
  EXPECT_EQ(LaneNotes::Map(wire::MakeSegment("other", 4096)), nullptr);
}

}  // namespace
}  // namespace longwire::daemon
