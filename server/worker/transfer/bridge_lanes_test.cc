// Bytes of copies between servers in the lanes of a bridge: they wait there for pinned memory, need
// no credit, and never take ordinary memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "server/worker/testing/test_session.h"
#include "wire/lane.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr uint64_t kTransfer = 31;
constexpr size_t kPiece = wire::kLaneChunkBytes;

class BridgeLanesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLanes = 2;  // of the bridge; the client has one

  explicit BridgeLanesTest(const char* bridges = "LONGWIRE_BRIDGES=1,2,1")
      : session(nullptr, 1 + kLanes, bridges) {
    session.CreateStream(kOne);
    session.LoadFunction();
    std::vector<int> rings = session.session->lanes().descriptors();
    for (size_t i = 2; i < rings.size(); i += 2) {
      up.emplace_back(wire::RingMemory::Map(dup(rings[i])));
    }
  }

  void SendPiece(size_t lane, uint64_t offset, std::span<const std::byte> data) {
    wire::LaneHeader header;
    header.bytes = static_cast<uint32_t>(sizeof(header) + data.size());
    header.transfer = kTransfer;
    header.offset = offset;
    const size_t room = wire::AlignLane(header.bytes);
    session.Until([&] { return up[lane].Reserve(room) != nullptr; }, "room in the lane");
    std::byte* to = up[lane].Reserve(room);
    std::memcpy(to, &header, sizeof(header));
    std::memcpy(to + sizeof(header), data.data(), data.size());
    up[lane].Commit(room);
  }
  void SendAll(const std::vector<std::byte>& data) {
    for (size_t at = 0; at < data.size(); at += kPiece) {
      const size_t bytes = std::min(kPiece, data.size() - at);
      SendPiece(at / kPiece % kLanes, at, std::span(data).subspan(at, bytes));
    }
  }
  uint64_t Receive(std::vector<std::byte>& target) {
    calls::lwBridgeReceive copy;
    copy.place = Linear(target.data(), target.size());
    copy.bytes = target.size();
    copy.transfer = kTransfer;
    copy.bridge = 1;
    return session.Send(copy, kOne);
  }
  // Bytes that the worker has not taken out of the lanes.
  size_t Waiting() {
    size_t bytes = 0;
    for (wire::RingProducer& lane : up) bytes += lane.written() - lane.released();
    return bytes;
  }
  void ExpectDrained() {
    session.Until([&] { return Waiting() == 0; }, "the lanes to be empty");
  }
  const BridgeFigures& figures() { return session.session->bridge_figures(); }
  bool IsOver() {
    session.Until([&] { return session.over.load(); }, "the session's end");
    return session.over;
  }

  TestSession session;
  std::vector<wire::RingProducer> up;
};

TEST_F(BridgeLanesTest, OneCopyMayBeLargerThanTheWindow) {
  auto data = Pattern(2 * wire::kUploadWindowBytes + 12'345);
  std::vector<std::byte> target(data.size());
  uint64_t position = Receive(target);
  SendAll(data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
  EXPECT_EQ(figures().received(), (data.size() + kPiece - 1) / kPiece);
  EXPECT_EQ(figures().ordinary(), 0u);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kCredit));
  EXPECT_TRUE(session.session->transfers().IsIdle());  // nothing of it counts as kept
}

TEST_F(BridgeLanesTest, BytesWaitInTheirLanesForTheirRecord) {
  auto data = Pattern(4 * kPiece);
  std::vector<std::byte> target(data.size());
  SendAll(data);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kCredit));
  EXPECT_GE(Waiting(), data.size());
  session.ExpectProgress(kOne, Receive(target));
  EXPECT_EQ(target, data);
  EXPECT_EQ(figures().ordinary(), 0u);
}

// The device takes nothing: pinned memory has a window's bytes at most, the rest waits.
TEST_F(BridgeLanesTest, BytesBehindAStoppedStreamWaitInTheirLanes) {
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  auto data = Pattern(wire::kUploadWindowBytes + 4 * kPiece);
  std::vector<std::byte> target(data.size());
  uint64_t position = Receive(target);
  SendAll(data);
  const uint64_t window = wire::kUploadWindowBytes / kPiece;
  session.Until([&] { return figures().received() >= window; }, "a window's bytes");
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  EXPECT_LE(figures().received(), window + kLanes);  // each lane looks for itself
  EXPECT_GE(Waiting(), (4 - kLanes) * kPiece);
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
  EXPECT_EQ(figures().ordinary(), 0u);
}

TEST_F(BridgeLanesTest, BytesOfACopyThatFellAwayLeaveTheirLanes) {
  session.driver.Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  session.Launch(kOne, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kError).header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  auto data = Pattern(4 * kPiece);
  std::vector<std::byte> target(data.size());
  SendAll(data);
  session.ExpectProgress(kOne, Receive(target));
  ExpectDrained();
  EXPECT_EQ(figures().received(), 0u);
}

TEST_F(BridgeLanesTest, BytesOfABridgeThatHasEndedLeaveTheirLanes) {
  auto data = Pattern(4 * kPiece);
  SendAll(data);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kCredit));
  EXPECT_NE(Waiting(), 0u);
  calls::lwBridgeEnd end;
  end.bridge = 1;
  session.Send(end);
  ExpectDrained();
}

TEST_F(BridgeLanesTest, APieceOutsideOfItsCopyEndsTheSession) {
  std::vector<std::byte> target(2 * kPiece), data(kPiece);
  Receive(target);
  SendPiece(0, kPiece + 8, data);
  EXPECT_TRUE(IsOver());
}

TEST_F(BridgeLanesTest, APieceOfNothingThatIsInASlotEndsTheSession) {
  wire::LaneHeader header;
  header.bytes = sizeof(header);
  header.in_slot = kPiece;
  header.transfer = kTransfer;
  std::memcpy(up[0].Reserve(sizeof(header)), &header, sizeof(header));
  up[0].Commit(sizeof(header));
  EXPECT_TRUE(IsOver());
}

// Clients that hold copies back by the window get its credit.
class WindowTest : public BridgeLanesTest {
 protected:
  WindowTest() : BridgeLanesTest("LONGWIRE_BRIDGES=1,2") {}
};

TEST_F(WindowTest, PiecesAreCredited) {
  auto data = Pattern(8 * kPiece);
  std::vector<std::byte> target(data.size());
  SendAll(data);
  session.ExpectProgress(kOne, Receive(target));
  EXPECT_EQ(target, data);
  uint64_t credited = 0;
  while (credited < data.size()) {
    credited += session.Expect(wire::DownKind::kCredit).Number();
  }
  EXPECT_EQ(credited, data.size());
}

}  // namespace
}  // namespace longwire::worker::testing
