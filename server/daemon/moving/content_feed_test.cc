// Pieces of a session that arrives reach its new worker in their order, whatever connections they
// come by, and nobody waits for what does not come.
#include "server/daemon/moving/content_feed.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <random>
#include <string>
#include <thread>

#include "server/daemon/moving/old_worker.h"

namespace longwire::daemon {
namespace {

using Way = ContentFeed::Way;

class ContentFeedTest : public ::testing::Test {
 protected:
  ContentFeedTest() {
    Pair pair;
    EXPECT_TRUE(MakePair(SOCK_STREAM, &pair));
    worker_ = std::move(pair.theirs);
    feed_.emplace(std::move(pair.ours));
  }

  bool Take(Way way, const std::string& piece) {
    // Cut as gRPC may do it.
    const auto bytes = std::as_bytes(std::span(piece));
    const std::span<const std::byte> parts[] = {
        bytes.first(bytes.size() / 3), {}, bytes.subspan(bytes.size() / 3)};
    return feed_->Take(way, parts);
  }

  // All that the worker reads until the end.
  std::string Read() {
    std::string all, some(1 << 16, 0);
    for (ssize_t got = 1; got > 0; all.append(some, 0, static_cast<size_t>(got))) {
      got = read(worker_.get(), some.data(), some.size());
      if (got <= 0) break;
    }
    return all;
  }

  wire::Descriptor worker_;
  std::optional<ContentFeed> feed_;
};

std::string Piece(size_t number) {
  return std::to_string(number) + std::string(number * 7919 % 50'000, 'x') + ";";
}

TEST_F(ContentFeedTest, OneConnectionBringsAll) {
  EXPECT_TRUE(Take(Way::kFirst, "one "));
  EXPECT_TRUE(Take(Way::kFirst, "two"));
  EXPECT_FALSE(feed_->Widen()) << "it has begun";
  EXPECT_TRUE(feed_->Await(0));
  feed_->End();
  EXPECT_EQ(Read(), "one two");
  EXPECT_FALSE(Take(Way::kFirst, "three"));
}

TEST_F(ContentFeedTest, TwoConnectionsTakeTurns) {
  constexpr size_t kPieces = 301;
  ASSERT_TRUE(feed_->Widen());
  EXPECT_FALSE(feed_->Widen()) << "there are two";
  auto bring = [&](Way way) {
    std::minstd_rand random(static_cast<unsigned>(way) + 1);
    for (size_t i = static_cast<size_t>(way); i < kPieces; i += 2) {
      if (random() % 3 == 0) usleep(random() % 300);
      EXPECT_TRUE(Take(way, Piece(i)));
    }
  };
  std::thread first(bring, Way::kFirst), second(bring, Way::kSecond), ends([&] {
    EXPECT_TRUE(feed_->Await(kPieces));
    feed_->End();
  });
  std::string expected;
  for (size_t i = 0; i < kPieces; ++i) expected += Piece(i);
  EXPECT_EQ(Read(), expected);
  first.join();
  second.join();
  ends.join();
  EXPECT_FALSE(feed_->is_broken());
}

TEST_F(ContentFeedTest, WhatDoesNotComeIsNotWaitedFor) {
  ASSERT_TRUE(feed_->Widen());
  EXPECT_TRUE(Take(Way::kFirst, "0"));
  std::thread waits([&] { EXPECT_FALSE(Take(Way::kFirst, "2")); });
  std::thread awaits([&] { EXPECT_FALSE(feed_->Await(3)); });
  usleep(20'000);
  feed_->Break();
  waits.join();
  awaits.join();
  EXPECT_TRUE(feed_->is_broken());
  EXPECT_TRUE(feed_->Await(1)) << "this one is there";
  feed_->End();
  EXPECT_EQ(Read(), "0");
}

// So that it is asked why, whichever connection finds out.
TEST_F(ContentFeedTest, AWorkerThatTakesNoMoreEndsIt) {
  ASSERT_TRUE(feed_->Widen());
  EXPECT_TRUE(Take(Way::kFirst, "0"));
  worker_ = {};
  EXPECT_FALSE(Take(Way::kSecond, "1"));
  feed_->Break();  // as the second connection ends then
  EXPECT_FALSE(Take(Way::kFirst, "2"));
  EXPECT_FALSE(feed_->Await(2));
  EXPECT_FALSE(feed_->is_broken());
  EXPECT_TRUE(feed_->has_ended());
}

TEST_F(ContentFeedTest, AnEndReachesWhoWrites) {
  ASSERT_TRUE(feed_->Widen());
  std::thread writes([&] { EXPECT_FALSE(Take(Way::kFirst, std::string(64 << 20, 'x'))); });
  usleep(20'000);  // nobody reads: it stands in the system by now
  feed_->End();
  writes.join();
}

TEST(ArrivingFeedsTest, OnlyTheServerThatOffersTheSessionJoins) {
  ArrivingFeeds feeds;
  const auto feed = std::make_shared<ContentFeed>(wire::Descriptor());
  EXPECT_TRUE(feeds.Add("move", "gpu1", feed));
  EXPECT_FALSE(feeds.Add("move", "gpu2", std::make_shared<ContentFeed>(wire::Descriptor())));
  EXPECT_EQ(feeds.Find("move", "gpu1"), feed);
  EXPECT_EQ(feeds.Find("move", "gpu2"), nullptr);
  EXPECT_EQ(feeds.Find("other", "gpu1"), nullptr);
  feeds.Remove("move");
  EXPECT_EQ(feeds.Find("move", "gpu1"), nullptr);
}

}  // namespace
}  // namespace longwire::daemon
