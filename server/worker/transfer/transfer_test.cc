// Copies, host functions and their order with progress; faults.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <numeric>
#include <thread>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;

void SendPieces(TestSession& session, uint64_t transfer, const std::vector<std::byte>& data) {
  for (size_t at = 0; at < data.size(); at += wire::kCopyPieceBytes) {
    calls::lwCopyData piece;
    piece.transfer = transfer;
    piece.offset = at;
    piece.data = std::span(data).subspan(at, std::min(wire::kCopyPieceBytes, data.size() - at));
    session.Send(piece);
  }
}

TEST(Transfer, DataComesBeforeTheProgressThatPublishesIt) {
  TestSession session;
  session.CreateStream(kOne);
  auto source = Pattern(3'000'000);
  calls::lwCopyToHost copy;
  copy.place = Linear(source.data(), source.size());
  copy.bytes = source.size();
  copy.transfer = 31;
  uint64_t position = session.Send(copy, kOne);
  std::vector<std::byte> got(source.size());
  size_t sum = 0;
  size_t last = 0;
  while (sum < got.size()) {
    DownRecord record = session.Expect(wire::DownKind::kData);
    ASSERT_EQ(record.Number(0), 31u);
    size_t bytes = record.payload.size() - 16;
    ASSERT_LE(record.Number(1) + bytes, got.size());
    std::memcpy(got.data() + record.Number(1), record.payload.data() + 16, bytes);
    sum += bytes;
    last = record.order;
  }
  EXPECT_EQ(got, source);
  EXPECT_GT(session.ExpectProgress(kOne, position).order, last);
}

TEST(Transfer, UploadInPiecesIsCreditedAndArrives) {
  TestSession session;
  session.CreateStream(kOne);
  auto data = Pattern(1'500'000);
  std::vector<std::byte> target(data.size());
  calls::lwCopyToDevice copy;
  copy.place = Linear(target.data(), target.size());
  copy.bytes = data.size();
  copy.transfer = 31;
  uint64_t position = session.Send(copy, kOne);
  SendPieces(session, 31, data);
  uint64_t credited = 0;
  while (credited < data.size()) credited += session.Expect(wire::DownKind::kCredit).Number();
  EXPECT_EQ(credited, data.size());
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
}

TEST(Transfer, PulledBytesAreAskedForWhenTheStreamGetsThere) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  auto data = Pattern(100'000);
  std::vector<std::byte> target(data.size());
  calls::lwCopyToDevice copy;
  copy.place = Linear(target.data(), target.size());
  copy.bytes = data.size();
  copy.transfer = 31;
  copy.pull = true;
  uint64_t position = session.Send(copy, kOne);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kPull));
  session.driver.RunStream(1);
  EXPECT_EQ(session.Expect(wire::DownKind::kPull).Number(), 31u);
  SendPieces(session, 31, data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
}

TEST(Transfer, ARowOfPulledCopiesIsAskedForTogether) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.StopStream(1);
  session.Launch(kOne, 1);
  auto data = Pattern(1000);
  std::vector<std::byte> target(data.size());
  auto pull = [&](uint64_t transfer) {
    calls::lwCopyToDevice copy;
    copy.place = Linear(target.data(), target.size());
    copy.bytes = data.size();
    copy.transfer = transfer;
    copy.pull = true;
    return session.Send(copy, kOne);
  };
  for (uint64_t transfer : {31, 32, 33}) pull(transfer);
  session.Launch(kOne, 2);
  uint64_t position = pull(34);
  EXPECT_TRUE(session.Quiet(wire::DownKind::kPull));
  session.driver.RunStream(1);
  // None of their bytes has come yet.
  for (uint64_t transfer : {31, 32, 33}) {
    EXPECT_EQ(session.Expect(wire::DownKind::kPull).Number(), transfer);
  }
  EXPECT_TRUE(session.Quiet(wire::DownKind::kPull));
  for (uint64_t transfer : {31, 32, 33}) SendPieces(session, transfer, data);
  EXPECT_EQ(session.Expect(wire::DownKind::kPull).Number(), 34u);
  SendPieces(session, 34, data);
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(target, data);
}

TEST(Transfer, RowsAreUnpackedAtAnyCut) {
  TestSession session;
  session.CreateStream(kOne);
  constexpr uint64_t kWidth = 1000, kRows = 300, kPitch = 1024;
  auto data = Pattern(kWidth * kRows);
  // The fake driver has no two-dimensional copies: single rows and parts of rows only. A piece of
  // 700 bytes never holds a whole row.
  std::vector<std::byte> target(kPitch * kRows);
  calls::lwCopyToDevice copy;
  copy.place = Linear(target.data(), kWidth);
  copy.place.pitch = kPitch;
  copy.place.height = copy.place.rows = kRows;
  copy.bytes = data.size();
  copy.transfer = 31;
  uint64_t position = session.Send(copy, kOne);
  for (size_t at = 0; at < data.size(); at += 700) {
    calls::lwCopyData piece;
    piece.transfer = 31;
    piece.offset = at;
    piece.data = std::span(data).subspan(at, std::min<size_t>(700, data.size() - at));
    session.Send(piece);
  }
  session.ExpectProgress(kOne, position);
  for (uint64_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(std::memcmp(&target[row * kPitch], &data[row * kWidth], kWidth), 0) << row;
  }
}

TEST(Transfer, HostFunctionRunsAfterDataAndBeforeLaterWork) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  std::byte source[64] = {};
  calls::lwCopyToHost copy;
  copy.place = Linear(source, sizeof(source));
  copy.bytes = sizeof(source);
  copy.transfer = 31;
  session.Send(copy, kOne);
  calls::lwHostFunction host;
  host.ticket = 77;
  session.Send(host, kOne);
  uint64_t last = session.Launch(kOne, 1);
  EXPECT_EQ(session.Expect(wire::DownKind::kData).Number(), 31u);
  EXPECT_EQ(session.Expect(wire::DownKind::kHostFunction).Number(), 77u);
  EXPECT_EQ(session.driver.IndexOf("launch s1 1"), -1);
  calls::lwHostFunctionDone done;
  done.ticket = 77;
  session.Send(done);
  session.ExpectProgress(kOne, last);
}

TEST(Transfer, FaultIsNoticedWithoutItsMarkerAndEndsEverything) {
  TestSession session;
  session.CreateStream(kOne);
  session.CreateStream(12);
  session.LoadFunction();
  session.driver.StopStream(1);
  session.driver.StopStream(2);
  uint64_t first = session.Launch(kOne, 1);
  uint64_t second = session.Launch(12, 2);
  session.Until([&] { return session.driver.IndexOf("launch s2 2") >= 0; }, "the launches");
  session.driver.Fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  DownRecord error = session.Expect(wire::DownKind::kError);
  EXPECT_EQ(error.header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE((error.header.flags & wire::kSticky) != 0);
  session.ExpectProgress(kOne, first);
  session.ExpectProgress(12, second);
  // Later calls fall away but count as finished; calls with answers give the code.
  session.ExpectProgress(kOne, session.Launch(kOne, 3));
  calls::lwModuleGlobal global;
  global.library = 901;
  global.name = "x";
  session.Send(global);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(session.over);
}

// Its reply would overtake the news, and who asks another context would hear "success".
TEST(Transfer, NobodyGoesOnBeforeTheClientKnowsOfAFault) {
  for (int round = 0; round < 100; ++round) {
    TestSession session;
    std::shared_ptr<Context> context = session.session->contexts.Find(TestSession::kContext);
    std::barrier start(2);
    auto fail = [&] {
      start.arrive_and_wait();
      session.session->failures().DriverFailed(*context, 1, CUDA_ERROR_ILLEGAL_ADDRESS, "a call");
      EXPECT_EQ(context->failed, CUDA_ERROR_ILLEGAL_ADDRESS);
    };
    std::thread other(fail);
    fail();
    other.join();
    session.Expect(wire::DownKind::kError);
  }
}

TEST(Transfer, OtherFailuresAreReportedOnceAndDoNotStay) {
  TestSession session;
  session.CreateStream(kOne);
  session.LoadFunction();
  session.driver.launch_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  uint64_t position = session.Launch(kOne, 1);
  DownRecord error = session.Expect(wire::DownKind::kError);
  EXPECT_EQ(error.header.code, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(error.header.position, position);
  EXPECT_EQ(error.header.flags & wire::kSticky, 0);
  EXPECT_NE(error.Text(4).find("lwLaunch"), std::string::npos);
  session.driver.launch_result = 0;
  session.ExpectProgress(kOne, session.Launch(kOne, 2));
}

// Of a copy that began to arrive before it was its turn: while pieces in pinned memory stay behind
// one that waits for such memory, there may be none for it.
TEST(Transfers, PiecesInPinnedMemoryAreTakenFirst) {
  std::vector<std::byte> block(1000);
  HostMemory host_memory([](const std::string&) {});
  BridgeFigures figures;
  Transfers transfers({.credit = [](uint64_t) {},
                       .acquire =
                           [&](Stream&, size_t bytes, StagingBlock* taken) {
                             *taken = {block.data(), bytes, 0};
                             return true;
                           },
                       .release = [](Stream*, const StagingBlock&) {},
                       .lands = {},
                       .host_memory = host_memory,
                       .figures = figures});
  auto data = Pattern(block.size());
  ASSERT_TRUE(transfers.Arrived(7, 0, data, Transfers::Way::kLane));
  ASSERT_TRUE(transfers.ExpectCopy(7, 2 * data.size()));
  transfers.BeginLanding(7, std::make_shared<Stream>());
  ASSERT_TRUE(transfers.Arrived(7, data.size(), data, Transfers::Way::kLane));
  bool wrong = false;
  Transfers::Piece first, second;
  ASSERT_TRUE(transfers.Take(7, &first, &wrong));
  EXPECT_NE(first.pinned.data, nullptr);
  EXPECT_EQ(first.offset, data.size());
  ASSERT_TRUE(transfers.Take(7, &second, &wrong));
  EXPECT_EQ(second.pinned.data, nullptr);
  EXPECT_EQ(second.bytes, data);
}

}  // namespace
}  // namespace longwire::worker::testing
