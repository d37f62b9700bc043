// Copies whose bytes take the session's lanes.
#include "server/worker/transfer/lanes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "server/worker/testing/test_session.h"
#include "wire/lane.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr uint64_t kTwo = 12;
constexpr size_t kPiece = wire::kMinLaneChunk;

class LanesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLanes = 3;

  LanesTest() : session(nullptr, kLanes) {
    session.CreateStream(kOne);
    session.CreateStream(kTwo);
    session.LoadFunction();
    std::vector<int> rings = session.session->lanes().descriptors();
    for (size_t i = 0; i < rings.size(); i += 2) {
      up.emplace_back(wire::RingMemory::Map(dup(rings[i])));
      down.emplace_back(wire::RingMemory::Map(dup(rings[i + 1])));
    }
  }

  // A record in a lane that says `bytes` of itself and holds `data`.
  void SendRecord(size_t lane, wire::LaneHeader header, std::span<const std::byte> data) {
    size_t room = wire::AlignLane(sizeof(header) + data.size());
    ASSERT_TRUE(up[lane].WaitForSpace(room, wire::Deadline::max()));
    std::byte* to = up[lane].Reserve(room);
    std::memcpy(to, &header, sizeof(header));
    if (!data.empty()) std::memcpy(to + sizeof(header), data.data(), data.size());
    up[lane].Commit(room);
  }
  void SendPiece(size_t lane, uint64_t transfer, uint64_t offset, std::span<const std::byte> data) {
    wire::LaneHeader header;
    header.bytes = static_cast<uint32_t>(sizeof(header) + data.size());
    header.transfer = transfer;
    header.offset = offset;
    SendRecord(lane, header, data);
  }
  // All of `data`, the pieces in any order.
  void SendAll(uint64_t transfer, const std::vector<std::byte>& data) {
    std::vector<size_t> offsets;
    for (size_t at = 0; at < data.size(); at += kPiece) offsets.push_back(at);
    std::shuffle(offsets.begin(), offsets.end(), std::mt19937(1));
    for (size_t i = 0; i < offsets.size(); ++i) {
      size_t bytes = std::min(kPiece, data.size() - offsets[i]);
      SendPiece(i % kLanes, transfer, offsets[i], std::span(data).subspan(offsets[i], bytes));
    }
  }

  uint64_t Copy(uint64_t transfer, std::vector<std::byte>& target, uint64_t stream) {
    calls::lwCopyToDevice copy;
    copy.place = Linear(target.data(), target.size());
    copy.bytes = target.size();
    copy.transfer = transfer;
    return session.Send(copy, stream);
  }
  void ExpectCredit(uint64_t bytes) {
    uint64_t credited = 0;
    while (credited < bytes) credited += session.Expect(wire::DownKind::kCredit).Number();
    EXPECT_EQ(credited, bytes);
  }
  // The client has put the copy's bytes into memory once the lanes and the log have these.
  struct Got {
    std::vector<std::byte> data;
    size_t by_lanes = 0;
    size_t in_log = 0;
    void Take(uint64_t offset, std::span<const std::byte> bytes, size_t* sum) {
      ASSERT_LE(offset + bytes.size(), data.size());
      std::memcpy(data.data() + offset, bytes.data(), bytes.size());
      *sum += bytes.size();
    }
  };
  // What lies in the lane's ring.
  void TakeFrom(wire::RingConsumer& lane, Got* got) {
    while (true) {
      wire::LaneHeader header;
      size_t bytes = 0;
      auto log = lane.Available();
      ASSERT_EQ(wire::PeekRecord(log, &header, &bytes, sizeof(header)), wire::WireResult::kOk);
      if (bytes == 0) return;
      got->Take(header.offset, log.subspan(sizeof(header), bytes - sizeof(header)), &got->by_lanes);
      lane.Advance(wire::AlignLane(bytes));
      lane.Release(lane.cursor());
    }
  }
  uint64_t Download(uint64_t transfer, std::vector<std::byte>& source, bool in_log = false) {
    calls::lwCopyToHost copy;
    copy.place = Linear(source.data(), source.size());
    copy.bytes = source.size();
    copy.transfer = transfer;
    copy.in_log = in_log;
    return session.Send(copy, kOne);
  }
  // All bytes of a copy of `bytes`, whichever way they come.
  Got TakeAll(size_t bytes) {
    Got got{std::vector<std::byte>(bytes)};
    session.Until(
        [&] {
          for (wire::RingConsumer& lane : down) TakeFrom(lane, &got);
          while (std::optional<DownRecord> data = session.Take(wire::DownKind::kData)) {
            auto rest = std::span<const std::byte>(data->payload).subspan(2 * sizeof(uint64_t));
            got.Take(data->Number(1), rest, &got.in_log);
          }
          return got.by_lanes + got.in_log >= bytes;
        },
        "the copy's bytes");
    EXPECT_EQ(got.by_lanes + got.in_log, bytes);
    return got;
  }
  bool Ended() {
    session.Until([&] { return session.over.load(); }, "the session's end");
    return session.over;
  }

  TestSession session;
  std::vector<wire::RingProducer> up;
  std::vector<wire::RingConsumer> down;
};

TEST_F(LanesTest, PiecesComeInAnyOrder) {
  auto data = Pattern(3'000'001);
  std::vector<std::byte> target(data.size());
  uint64_t position = Copy(31, target, kOne);
  SendAll(31, data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
  ExpectCredit(data.size());
}

TEST_F(LanesTest, PiecesMayComeBeforeTheirRecord) {
  auto data = Pattern(1'000'001);
  std::vector<std::byte> target(data.size());
  SendAll(31, data);
  ExpectCredit(data.size());
  session.ExpectProgress(kOne, Copy(31, target, kOne));
  EXPECT_EQ(target, data);
}

// A stream that waits for long fills no lane that another one needs.
TEST_F(LanesTest, BytesBehindAStoppedStreamHoldUpNoOther) {
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  auto first = Pattern(3 * wire::kLaneRingBytes), second = Pattern(1'000'000);
  std::vector<std::byte> first_target(first.size()), second_target(second.size());
  uint64_t stopped = Copy(31, first_target, kOne);
  SendAll(31, first);
  uint64_t position = Copy(32, second_target, kTwo);
  SendAll(32, second);
  session.ExpectProgress(kTwo, position);
  EXPECT_EQ(second_target, second);
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, stopped);
  EXPECT_EQ(first_target, first);
}

TEST_F(LanesTest, LandingStandsBeforeTheProgressThatPublishesIt) {
  auto source = Pattern(3'000'000);
  uint64_t position = Download(31, source);
  EXPECT_EQ(TakeAll(source.size()).data, source);
  DownRecord landing = session.Expect(wire::DownKind::kLanding);
  EXPECT_EQ(landing.Number(0), 31u);
  EXPECT_EQ(landing.Number(1), source.size());
  EXPECT_GT(session.ExpectProgress(kOne, position).order, landing.order);
}

// The log's share of a copy keeps its backlog small, whatever else is under way.
TEST_F(LanesTest, TheLogCarriesAPartBesideTheLanes) {
  auto source = Pattern(6'000'000);
  uint64_t position = Download(31, source);
  session.ExpectProgress(kOne, position);
  Got got = TakeAll(source.size());
  EXPECT_EQ(got.data, source);
  EXPECT_GT(got.in_log, 0u);
  EXPECT_LE(got.in_log, wire::kLogAheadBytes);
  EXPECT_GT(got.by_lanes, got.in_log);
}

TEST_F(LanesTest, ALargeCopyTakesTheLanesAlone) {
  auto source = Pattern(wire::kBesideLanesBytes + 1);
  Download(31, source);
  Got got = TakeAll(source.size());
  EXPECT_EQ(got.data, source);
  EXPECT_EQ(got.in_log, 0u);
}

// Pieces of one copy may come both ways.
TEST_F(LanesTest, BytesMayComeInTheLogToo) {
  auto data = Pattern(3'000'001);
  std::vector<std::byte> target(data.size());
  uint64_t position = Copy(31, target, kOne);
  size_t turn = 0;
  for (size_t at = 0; at < data.size(); at += kPiece) {
    auto bytes = std::span(data).subspan(at, std::min(kPiece, data.size() - at));
    if (++turn % 2 == 0) {
      SendPiece(turn % kLanes, 31, at, bytes);
      continue;
    }
    calls::lwCopyData piece;
    piece.transfer = 31;
    piece.offset = at;
    piece.data = bytes;
    session.Send(piece);
  }
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
  ExpectCredit(data.size());
}

TEST_F(LanesTest, BytesOfACopyThatFellAwayAreCredited) {
  session.driver.Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  session.Launch(kOne, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  auto data = Pattern(1'000'000);
  std::vector<std::byte> target(data.size());
  uint64_t position = Copy(31, target, kOne);
  SendAll(31, data);
  session.ExpectProgress(kOne, position);
  ExpectCredit(data.size());
}

TEST_F(LanesTest, APieceOutsideOfItsCopyEndsTheSession) {
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  std::vector<std::byte> target(kPiece + 8), data(kPiece);
  Copy(31, target, kOne);
  // The worker has read the record once it has asked what comes after it.
  session.ExpectProgress(kTwo, session.Launch(kTwo, 2));
  SendPiece(0, 31, 9, data);
  EXPECT_TRUE(Ended());
}

TEST_F(LanesTest, APieceThatTheRecordDoesNotCoverFailsTheCopy) {
  std::vector<std::byte> target(2 * kPiece), data(kPiece);
  SendPiece(1, 31, 2 * kPiece - 1, data);
  ExpectCredit(kPiece);
  Copy(31, target, kOne);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(session.over);
  EXPECT_EQ(target.back(), std::byte{0});
}

// Pieces that lie in slots of a segment which the client shares.
class SlotsTest : public LanesTest {
 protected:
  static constexpr uint64_t kPart = HostSegment::kPart;

  SlotsTest() {
    HostSegment& segment = session.session->host_segment();
    segment.Make(4 * kPart);
    client = wire::SegmentMapping::Map(segment.descriptor(), segment.bytes());
    calls::lwHostPin pin;
    pin.offset = kPart;
    pin.bytes = kPart;
    session.Send(pin);
    EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_SUCCESS);
  }

  void SendSlot(uint64_t transfer, uint64_t offset, uint64_t slot, uint64_t bytes) {
    wire::LaneHeader header;
    header.bytes = sizeof(header);
    header.in_slot = static_cast<uint32_t>(bytes);
    header.transfer = transfer;
    header.offset = offset;
    header.slot = slot;
    SendRecord(slot / kPiece % kLanes, header, {});
  }
  // All of `data`, which the part has room for.
  void SendBySlots(uint64_t transfer, std::span<const std::byte> data) {
    for (size_t at = 0; at < data.size(); at += kPiece) {
      size_t bytes = std::min(kPiece, data.size() - at);
      std::memcpy(client->data() + kPart + at, data.data() + at, bytes);
      SendSlot(transfer, at, kPart + at, bytes);
    }
  }
  void ExpectSlots(uint64_t bytes) {
    std::set<uint64_t> given, expected;
    for (size_t at = 0; at < bytes; at += kPiece) {
      expected.insert(kPart + at);
      given.insert(session.Expect(wire::DownKind::kSlot).Number());
    }
    EXPECT_EQ(given, expected);
    EXPECT_TRUE(session.Quiet(wire::DownKind::kSlot));
  }

  std::unique_ptr<wire::SegmentMapping> client;
};

TEST_F(SlotsTest, TheDeviceReadsThemWhereTheyLie) {
  auto data = Pattern(1'000'001);
  std::vector<std::byte> target(data.size());
  uint64_t position = Copy(31, target, kOne);
  SendBySlots(31, data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
  ExpectCredit(data.size());
  ExpectSlots(data.size());
}

TEST_F(SlotsTest, TheyAreTheWorkersUntilTheirCopyIsDone) {
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  auto first = Pattern(500'000), second = Pattern(1'000'000);
  std::vector<std::byte> first_target(first.size()), second_target(second.size());
  uint64_t stopped = Copy(31, first_target, kOne);
  SendBySlots(31, first);
  // Other streams' copies take the rings meanwhile.
  uint64_t position = Copy(32, second_target, kTwo);
  SendAll(32, second);
  session.ExpectProgress(kTwo, position);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kSlot));
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, stopped);
  EXPECT_EQ(first_target, first);
  ExpectSlots(first.size());
}

TEST_F(SlotsTest, OneCopyMayTakeSlotsAndRings) {
  auto data = Pattern(2 * kPart);
  std::vector<std::byte> target(data.size());
  std::span all(data);
  SendBySlots(31, all.first(kPart));  // even before the copy's record
  for (size_t at = kPart; at < data.size(); at += kPiece) {
    SendPiece(at / kPiece % kLanes, 31, at, all.subspan(at, kPiece));
  }
  session.ExpectProgress(kOne, Copy(31, target, kOne));
  EXPECT_EQ(target, data);
  ExpectSlots(kPart);
}

TEST_F(SlotsTest, ThoseOfACopyThatFellAwayComeBack) {
  session.driver.Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  session.Launch(kOne, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  auto data = Pattern(1'000'000);
  std::vector<std::byte> target(data.size());
  SendBySlots(31, std::span(data).first(3 * kPiece));
  uint64_t position = Copy(31, target, kOne);
  session.ExpectProgress(kOne, position);
  for (size_t at = 3 * kPiece; at < data.size(); at += kPiece) {
    SendSlot(31, at, kPart + at, std::min(kPiece, data.size() - at));
  }
  ExpectSlots(data.size());
}

TEST_F(SlotsTest, APlaceOutsideOfThePartEndsTheSession) {
  SendSlot(31, 0, 2 * kPart - 4096, kPiece);
  EXPECT_TRUE(Ended());
}

TEST_F(SlotsTest, APlaceOutsideOfTheSegmentEndsTheSession) {
  SendSlot(31, 0, ~uint64_t{0} - 4096, kPiece);
  EXPECT_TRUE(Ended());
}

TEST_F(SlotsTest, ASlotWithBytesBehindItEndsTheSession) {
  wire::LaneHeader header;
  header.bytes = sizeof(header) + 64;
  header.in_slot = 64;
  header.transfer = 31;
  header.slot = kPart;
  SendRecord(0, header, std::vector<std::byte>(64));
  EXPECT_TRUE(Ended());
}

TEST_F(LanesTest, ASlotWithoutASegmentEndsTheSession) {
  wire::LaneHeader header;
  header.bytes = sizeof(header);
  header.in_slot = kPiece;
  header.transfer = 31;
  SendRecord(0, header, {});
  EXPECT_TRUE(Ended());
}

TEST_F(LanesTest, APieceOfNothingEndsTheSession) {
  std::vector<std::byte> data(kPiece);
  SendPiece(2, 0, 0, data);
  EXPECT_TRUE(Ended());
}

TEST_F(LanesTest, ARecordOfAnImpossibleSizeEndsTheSession) {
  wire::LaneHeader header;
  header.bytes = sizeof(header) - 1;
  SendRecord(0, header, {});
  EXPECT_TRUE(Ended());
}

TEST_F(LanesTest, AnOpeningRecordIsNoPiece) {
  for (size_t lane = 0; lane < kLanes; ++lane) SendPiece(lane, 0, 0, {});
  auto data = Pattern(500'000);
  std::vector<std::byte> target(data.size());
  uint64_t position = Copy(31, target, kOne);
  SendAll(31, data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
}

}  // namespace
}  // namespace longwire::worker::testing
