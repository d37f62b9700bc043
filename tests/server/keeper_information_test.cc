// What is free, on pages that the keeper shares with workers: the test plays the warden and the
// workers.
#include <fcntl.h>
#include <sys/mman.h>

#include "server/protocol/info_page.h"
#include "tests/server/keeper_fixture.h"
#include "wire/record.h"

namespace longwire::keeper {
namespace {

using Clock = std::chrono::steady_clock;

class KeeperInformationTest : public KeeperTest {
 protected:
  struct Worker {
    wire::Descriptor socket;
    std::unique_ptr<InfoView> view{};
  };

  // A worker that has greeted.
  Worker Start(uint64_t number) {
    Worker worker{Attach(number)};
    Say(worker.socket, Borrow{1, {message::kHelloToken, message::TokenOf({14, 14})}});
    EXPECT_TRUE(wire::ReceiveMessage(worker.socket.get(), milliseconds(5000)));
    return worker;
  }

  // What the keeper answers; a page that comes along is the worker's from then on.
  static uint64_t Asked(Worker& worker) {
    Info info;
    auto packet = wire::ReceiveMessage(worker.socket.get(), milliseconds(5000));
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &info) == wire::WireResult::kOk);
    if (packet && !packet->descriptors.empty()) {
      EXPECT_EQ(worker.view, nullptr) << "it comes once";
      worker.view = InfoView::Map(packet->descriptors[0]);
    }
    return info.free;
  }
  static uint64_t Ask(Worker& worker) {
    Say(worker.socket, GetInfo{3});
    return Asked(worker);
  }
  using KeeperTest::Ask;

  static constexpr uint64_t kNothing = UINT64_MAX;
  // What the page says; kNothing: that the keeper is to be asked.
  static uint64_t Known(const Worker& worker) {
    Info info;
    return worker.view != nullptr && worker.view->Read(&info, Clock::now()) ? info.free : kNothing;
  }
  // Waits until it says that.
  static bool Comes(const Worker& worker, uint64_t bytes) {
    const auto end = Clock::now() + std::chrono::seconds(5);
    while (Known(worker) != bytes && Clock::now() < end) usleep(500);
    return Known(worker) == bytes;
  }

  // What stands there, whether or not it still counts.
  static bool IsWritten(const Worker& worker, uint64_t bytes) {
    const auto end = Clock::now() + std::chrono::seconds(5);
    Info info;
    while (Clock::now() < end) {
      if (worker.view->Read(&info, InfoTime()) && info.free == bytes) return true;
      usleep(500);
    }
    return false;
  }

  // Says what a session keeps free when it is asked for that. True: it was.
  static bool SayIdle(Worker& worker, uint64_t idle) {
    auto packet = wire::ReceiveMessage(worker.socket.get(), milliseconds(5000));
    Reclaim ask;
    bool asked = packet && message::Unpack(packet->bytes, &ask) == wire::WireResult::kOk;
    if (asked) Say(worker.socket, Reclaimed{ask.request, 0, idle});
    return asked;
  }
};

TEST_F(KeeperInformationTest, TheFirstAnswerBringsAPageThatSaysTheSame) {
  Worker worker = Start(1);
  EXPECT_EQ(Ask(worker), 960 * kMiB);
  ASSERT_NE(worker.view, nullptr);
  EXPECT_EQ(Known(worker), 960 * kMiB);
  Info info;
  ASSERT_TRUE(worker.view->Read(&info, Clock::now() + std::chrono::hours(24)));
  EXPECT_EQ(info.total, 1024 * kMiB);
  EXPECT_EQ(info.granularity, 2 * kMiB);
  EXPECT_EQ(Ask(worker), 960 * kMiB);
}

TEST_F(KeeperInformationTest, AWorkerThatHasNotGreetedGetsNone) {
  Worker worker{Attach(1)};
  EXPECT_EQ(Ask(worker), 960 * kMiB);
  EXPECT_EQ(worker.view, nullptr);
}

// Many, because a page that is written a little later is often right, too.
TEST_F(KeeperInformationTest, WhatIsGrantedIsOnThePageBeforeItsGrant) {
  Worker worker = Start(1);
  ASSERT_EQ(Ask(worker), 960 * kMiB);
  for (uint64_t i = 1; i <= 50; ++i) {
    ASSERT_EQ(Ask(worker.socket, {2 * kMiB}).chunks.size(), 1u);
    ASSERT_EQ(Known(worker), (960 - i * 2) * kMiB);
  }
  Say(worker.socket, Charge{8, 32 * kMiB, 32 * kMiB});
  ASSERT_TRUE(wire::ReceiveMessage(worker.socket.get(), milliseconds(5000)));
  EXPECT_EQ(Ask(worker), Known(worker));
}

TEST_F(KeeperInformationTest, WhatOthersKeepFreeCountsForAsLongAsAnAnswerDoes) {
  Worker worker = Start(1), other = Start(2);
  ASSERT_EQ(Ask(other.socket, {800 * kMiB}).chunks.size(), 1u);
  Say(worker.socket, GetInfo{3});
  ASSERT_TRUE(SayIdle(other, 100 * kMiB));
  EXPECT_EQ(Asked(worker), 260 * kMiB);
  EXPECT_TRUE(Comes(worker, kNothing)) << "the other one may have less by now";
  Say(worker.socket, GetInfo{3});
  ASSERT_TRUE(SayIdle(other, 0));
  EXPECT_EQ(Asked(worker), 160 * kMiB);
}

TEST_F(KeeperInformationTest, WhatAClientWatchesCountsUntilItReportsAChange) {
  Worker worker = Start(1), other = Start(2);
  ASSERT_EQ(Ask(other.socket, {800 * kMiB}).chunks.size(), 1u);
  Say(worker.socket, GetInfo{3});
  Reclaim ask;
  auto packet = wire::ReceiveMessage(other.socket.get(), milliseconds(5000));
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &ask) == wire::WireResult::kOk);
  EXPECT_EQ(ask.bytes, 0u);
  EXPECT_NE(ask.keep, 0u);
  Say(other.socket, Reclaimed{ask.request | wire::kWatchesFree, 0, 100 * kMiB});
  EXPECT_EQ(Asked(worker), 260 * kMiB);
  std::this_thread::sleep_for(3 * Drain::kFigureAge);
  EXPECT_EQ(Known(worker), 260 * kMiB);
  EXPECT_EQ(Ask(worker), 260 * kMiB);
  EXPECT_FALSE(wire::ReceiveMessage(other.socket.get(), milliseconds(0))) << "it is not asked";
  Say(other.socket, Reclaimed{ask.request, 0, 200 * kMiB});
  EXPECT_TRUE(IsWritten(worker, 360 * kMiB));
  EXPECT_TRUE(Comes(worker, kNothing)) << "further changes are not reported";
}

TEST_F(KeeperInformationTest, AChangeThatComesBeforeItsAnswerCounts) {
  Worker worker = Start(1), other = Start(2);
  ASSERT_EQ(Ask(other.socket, {800 * kMiB}).chunks.size(), 1u);
  Say(worker.socket, GetInfo{3});
  ASSERT_TRUE(SayIdle(other, 100 * kMiB));
  Say(other.socket, Reclaimed{1 | wire::kWatchesFree, 0, 100 * kMiB});
  EXPECT_EQ(Asked(worker), 260 * kMiB);
  EXPECT_TRUE(Comes(worker, kNothing));
}

TEST_F(KeeperInformationTest, APageOfAnEndedConnectionCountsNoMore) {
  Worker worker = Start(1);
  ASSERT_EQ(Ask(worker), 960 * kMiB);
  worker.socket.Reset();
  EXPECT_TRUE(Comes(worker, kNothing));
}

class WithoutFiguresTest : public KeeperInformationTest {
 protected:
  void SetUp() override { StartKeeper(true, false); }
};

TEST_F(WithoutFiguresTest, WhatOthersTakeAndReturnComesToo) {
  Worker worker = Start(1), other = Start(2);
  ASSERT_EQ(Ask(worker), 960 * kMiB);
  Answer has = Ask(other.socket, {800 * kMiB});
  ASSERT_EQ(has.chunks.size(), 1u);
  EXPECT_TRUE(Comes(worker, 160 * kMiB)) << Known(worker);
  Say(other.socket, Return{{has.chunks[0].chunk}});
  EXPECT_TRUE(Comes(worker, 960 * kMiB)) << Known(worker);
  ASSERT_EQ(Ask(other.socket, {800 * kMiB}).chunks.size(), 1u);
  EXPECT_TRUE(Comes(worker, 160 * kMiB)) << Known(worker);
  other.socket.Reset();
  EXPECT_TRUE(Comes(worker, 960 * kMiB)) << Known(worker);
}

TEST(InfoPageTest, OnlyItsMakerWrites) {
  auto page = InfoPage::Create();
  ASSERT_NE(page, nullptr);
  page->Write({0, 5, 7, 2}, InfoTime::max());
  wire::Descriptor file(fcntl(page->descriptor(), F_DUPFD_CLOEXEC, 0));
  auto view = InfoView::Map(file);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), MAP_FAILED);
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_NE(mprotect(mapped, 4096, PROT_READ | PROT_WRITE), 0);
  munmap(mapped, 4096);
  std::string again = "/proc/self/fd/" + std::to_string(file.get());
  wire::Descriptor other(open(again.c_str(), O_RDWR | O_CLOEXEC));
  for (int descriptor : {file.get(), other.get()}) {
    EXPECT_LT(pwrite(descriptor, "\xff", 1, 8), 0);
    EXPECT_NE(ftruncate(descriptor, 0), 0);
    EXPECT_NE(fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  }
  Info info;
  ASSERT_TRUE(view->Read(&info, Clock::now()));
  EXPECT_EQ(info.free, 5u);
  page->Write({0, 6, 7, 2}, InfoTime::min());
  EXPECT_FALSE(view->Read(&info, Clock::now()));
  page->Write({0, 6, 7, 2}, InfoTime::max());
  ASSERT_TRUE(view->Read(&info, Clock::now()));
  EXPECT_EQ(info.free, 6u);
  page.reset();
  EXPECT_FALSE(view->Read(&info, Clock::now()));
  EXPECT_EQ(InfoView::Map(wire::Descriptor(memfd_create("other", MFD_CLOEXEC))), nullptr);
}

}  // namespace
}  // namespace longwire::keeper
