// A server that reports the end of a copy before it has taken the bytes: what the program writes to
// the memory from then on is not sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "client-shim/session/session.h"
#include "client-shim/session/upload_source.h"
#include "client-shim/testing/fake_session.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

using testing::kMiB;
using wire::DownKind;

constexpr size_t kBytes = 18 * kMiB;  // more than the window of uploads
constexpr uint64_t kWindow = 16 * kMiB;
constexpr int kTries = 10'000;  // a millisecond each

class UploadEndTest : public testing::WithContext {
 protected:
  // Pieces that were sent, and whether the program's later bytes are in them.
  struct Sent {
    uint64_t bytes = 0;
    bool later = false;
  };

  static Transfers& transfers() { return TheSession().transfers(); }
  HostPlace Place() { return HostPlace::Linear(memory_.data(), memory_.size()); }

  uint64_t Offer(bool of_graph) {
    uint64_t transfer = TheSession().NewId();
    transfers().OfferUpload(transfer, Place(), of_graph);
    return transfer;
  }
  void Pull(uint64_t transfer) { fake_.SendRecord(DownKind::kPull, 0, {transfer}); }

  // Takes what is sent until it is that much.
  Sent Take(uint64_t bytes) {
    Sent sent;
    for (int i = 0; i < kTries && sent.bytes < bytes; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (const auto& record : fake_.TakeOnly<calls::lwCopyData>()) {
        auto data = record.As<calls::lwCopyData>().data;
        sent.bytes += data.size();
        sent.later = sent.later || std::ranges::count(data, std::byte{'s'}) != 0;
      }
    }
    return sent;
  }
  // Until the window is full.
  void ExpectWindow() {
    Sent sent = Take(kWindow);
    EXPECT_EQ(sent.bytes, kWindow);
    EXPECT_FALSE(sent.later);
  }
  // The program uses its memory for something else, and the server takes the rest.
  void ExpectNothingLater() {
    std::ranges::fill(memory_, std::byte{'s'});
    fake_.SendRecord(DownKind::kCredit, 0, {kWindow});
    Sent sent = Take(kBytes - kWindow);
    EXPECT_EQ(sent.bytes, kBytes - kWindow);
    EXPECT_FALSE(sent.later);
    fake_.SendRecord(DownKind::kCredit, 0, {kBytes - kWindow});
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes, std::byte{'p'});
};

TEST_F(UploadEndTest, NothingIsReadBehindTheEndOfItsCopy) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  uint64_t transfer = Offer(false);
  TheSession().EndsWith(stream, Work(stream), {Ending::Kind::kUpload, transfer});
  Pull(transfer);
  ExpectWindow();
  fake_.LetGo(stream);
  ExpectNothingLater();
}

TEST_F(UploadEndTest, NothingIsReadBehindTheEndOfItsGraph) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  uint64_t transfer = Offer(true);
  ASSERT_TRUE(transfers().GraphsCanRead());
  transfers().BeginGraphReads();
  TheSession().EndsWith(stream, Work(stream), {Ending::Kind::kGraphReads});
  Pull(transfer);
  ExpectWindow();
  fake_.LetGo(stream);
  ExpectNothingLater();
  transfers().DropUpload(transfer);
  EXPECT_FALSE(transfers().GraphsCanRead());
}

TEST_F(UploadEndTest, AGraphsBytesAreAskedForWhileItRuns) {
  Transfers::Request request;
  uint64_t transfer = Offer(true);
  EXPECT_EQ(transfers().TakeUpload(transfer, &request), Transfers::Taken::kTwice);
  transfers().BeginGraphReads();
  EXPECT_EQ(transfers().TakeUpload(transfer, &request), Transfers::Taken::kNow);
  transfers().UploadRead(transfer);
  transfers().EndGraphReads();
  EXPECT_EQ(transfers().TakeUpload(transfer, &request), Transfers::Taken::kTwice);
  transfers().DropUpload(transfer);
}

// Begins to read, and has the upload end on a thread of its own.
template <class End>
void ExpectToWaitForReads(Transfers& transfers, uint64_t transfer, End end) {
  Transfers::Request request;
  ASSERT_EQ(transfers.TakeUpload(transfer, &request), Transfers::Taken::kNow);
  ASSERT_TRUE(transfers.BeginRead(request));
  std::atomic<bool> ended{false};
  std::thread ending([&] {
    end();
    ended.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ended.load());
  transfers.EndRead(request);
  ending.join();
  EXPECT_FALSE(transfers.BeginRead(request));
  transfers.UploadRead(transfer);
}

TEST_F(UploadEndTest, TheEndWaitsForAReadThatIsUnderWay) {
  uint64_t transfer = Offer(false);
  ExpectToWaitForReads(transfers(), transfer, [&] { transfers().EndUpload(transfer); });
  transfer = Offer(true);
  transfers().BeginGraphReads();
  ExpectToWaitForReads(transfers(), transfer, [] { transfers().EndGraphReads(); });
  transfers().DropUpload(transfer);
  // The session's end, of a table that no session has.
  Transfers others;
  others.OfferUpload(1, Place(), false);
  ExpectToWaitForReads(others, 1, [&] { others.EndUploads(); });
}

}  // namespace
}  // namespace longwire::shim
