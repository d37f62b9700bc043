// What a session may have waiting in its worker, and what happens beyond it.
#include "server/worker/transfer/in_flight.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/worker/testing/test_session.h"
#include "wire/lane.h"
#include "wire/limits.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLimit = 2 * kMiB;

std::shared_ptr<gates::GatePage> PageWithLimit() {
  auto page = gates::GatePage::Create(1);
  page->bytes_in_flight() = kLimit;
  return page;
}

class InFlight : public ::testing::Test {
 protected:
  InFlight() {
    session.CreateStream(kOne);
    session.LoadFunction();
    session.driver.StopStream(1);
    // More than a stream has unfinished: what follows waits in the worker.
    for (uint32_t i = 0; i < 2 * wire::kMaxUnfinishedPerStream; ++i) session.Launch(kOne, 1);
  }

  calls::lwCopyToDevice Copy(uint64_t bytes) {
    calls::lwCopyToDevice copy;
    copy.place.address = reinterpret_cast<uint64_t>(target.data());
    copy.place.width_bytes = copy.place.pitch = copy.bytes = bytes;
    copy.place.rows = copy.place.slices = copy.place.height = 1;
    return copy;
  }

  // True if the session ended by itself within a moment.
  bool Ended() {
    for (int i = 0; i < 100 && !session.over; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return session.over;
  }

  TestSession session{PageWithLimit()};
  std::vector<std::byte> target = std::vector<std::byte>(8 * kMiB);
};

// Else a client that keeps to its window would wait for credit that waits for it.
TEST(HeldCredit, LeavesRoomForTheLargestPiece) {
  for (uint64_t bytes = 1; bytes <= 512 * kMiB; bytes += bytes / 2 + 1) {
    const InFlightLimits limits = InFlightLimits::Of(bytes);
    const uint64_t by_lanes = std::max<uint64_t>(limits.window / 4, wire::kMinLaneChunk);
    EXPECT_LE(limits.held_credit() + wire::kCopyPieceBytes, limits.window) << bytes;
    EXPECT_LE(limits.held_credit() + by_lanes, limits.window) << bytes;
  }
  EXPECT_EQ(InFlightLimits::Of(1).held_credit(), 0u);
  EXPECT_GT(InFlightLimits::Of(512 * kMiB).held_credit(), kMiB);
}

TEST_F(InFlight, CallsBeyondTheLimitStayInTheLog) {
  std::vector<std::byte> data(wire::kInlineCopyBytes, std::byte{3});
  auto copy = Copy(data.size());
  copy.data = data;
  uint64_t before = session.taken();
  uint64_t last = 0;
  for (uint64_t sent = 0; sent < 6 * kMiB; sent += data.size()) last = session.Send(copy, kOne);
  session.Until([&] { return session.taken() - before > kLimit / 4; }, "the first copies' taking");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(session.taken() - before, kLimit);
  session.driver.RunStream(1);
  session.ExpectProgress(kOne, last);
  EXPECT_GT(session.taken() - before, 6 * kMiB);
}

// Behind one that waits for an image that never comes.
TEST_F(InFlight, CallsThatWaitForAHelperStayInTheLog) {
  calls::lwModuleLoad load;
  load.library = 50;
  load.transfer = 51;
  load.bytes = 1000;
  load.on_offer = true;
  session.Send(load);
  load.option.assign(20'000, 0);
  uint64_t before = session.taken();
  for (uint64_t sent = 0; sent < 6 * kMiB; sent += load.option.size() * 4) {
    ++load.library;
    session.Send(load);
  }
  session.Until([&] { return session.taken() - before > kLimit / 4; }, "the first calls' taking");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(session.taken() - before, kLimit);
}

TEST_F(InFlight, CallsThatWaitForCallsBeforeThemStayInTheLog) {
  calls::lwReturnChunks chunks;
  chunks.chunk.assign(10'000, 12345);
  uint64_t before = session.taken();
  for (uint64_t sent = 0; sent < 6 * kMiB; sent += chunks.chunk.size() * 8) session.Send(chunks);
  session.Until([&] { return session.taken() - before > kLimit / 4; }, "the first calls' taking");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(session.taken() - before, kLimit);
  session.driver.RunStream(1);
  session.Until([&] { return session.taken() == session.sent(); }, "the last calls' taking");
}

TEST_F(InFlight, PiecesCountWithTheirPlaces) {
  auto copy = Copy(8 * kMiB);
  copy.transfer = 31;
  session.Send(copy, kOne);
  calls::lwCopyData piece;
  std::vector<std::byte> data(1);
  piece.transfer = 31;
  piece.data = data;
  for (; piece.offset < 20'000; ++piece.offset) session.Send(piece);
  EXPECT_TRUE(Ended());
}

TEST_F(InFlight, AClientThatSendsWithoutCreditIsEnded) {
  auto copy = Copy(8 * kMiB);
  copy.transfer = 31;
  session.Send(copy, kOne);
  calls::lwCopyData piece;
  std::vector<std::byte> data(wire::kCopyPieceBytes);
  piece.transfer = 31;
  piece.data = data;
  for (; piece.offset < 4 * kMiB; piece.offset += data.size()) session.Send(piece);
  EXPECT_TRUE(Ended());
}

TEST_F(InFlight, AClientThatKeepsToItsWindowIsNot) {
  InFlightLimits limits = session.session->transfers().limits();
  EXPECT_LE(limits.calls + limits.uploads, kLimit);
  auto copy = Copy(8 * kMiB);
  copy.transfer = 31;
  uint64_t position = session.Send(copy, kOne);
  calls::lwCopyData piece;
  std::vector<std::byte> data(wire::kCopyPieceBytes, std::byte{5});
  piece.transfer = 31;
  piece.data = data;
  uint64_t under_way = 0;
  bool stopped = true;
  for (; piece.offset < copy.bytes; piece.offset += data.size()) {
    if (stopped && piece.offset >= kLimit / 2) {
      session.driver.RunStream(1);
      stopped = false;
    }
    while (under_way + data.size() > limits.window) {
      under_way -= session.Expect(wire::DownKind::kCredit).Number();
    }
    under_way += data.size();
    session.Send(piece);
  }
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target.back(), std::byte{5});
}

}  // namespace
}  // namespace longwire::worker::testing
