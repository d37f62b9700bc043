// A worker's end of its connection to the keeper: the keeper's own requests are served at any time.
#include "server/worker/memory/keeper_client.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/mutex.h"
#include "server/protocol/hello.h"

namespace longwire::worker {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{10'000};

class KeeperClientTest : public testing::Test {
 protected:
  void SetUp() override {
    wire::Descriptor ours;
    ASSERT_TRUE(wire::LocalPair(&ours, &keeper));
    client = std::make_unique<KeeperClient>(ours.Release());
    client->Listen([this](const keeper::Reclaim& asked) {
      base::MutexLock lock(mutex);
      heard.push_back(asked.request);
      changed.NotifyAll();
    });
  }

  void AwaitHeard(size_t count) {
    base::MutexLock lock(mutex);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (heard.size() < count && changed.WaitUntil(lock, deadline)) {
    }
    EXPECT_GE(heard.size(), count);
  }

  std::vector<uint64_t> Heard() {
    base::MutexLock lock(mutex);
    return heard;
  }

  template <class M>
  void Say(const M& message) {
    ASSERT_TRUE(wire::SendMessage(keeper.get(), message::Pack(message)));
  }

  template <class M>
  M Next() {
    M next;
    auto packet = wire::ReceiveMessage(keeper.get(), kPatience);
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &next) == wire::WireResult::kOk);
    return next;
  }

  wire::Descriptor keeper;
  std::unique_ptr<KeeperClient> client;
  base::Mutex mutex;
  base::CondVar changed;
  std::vector<uint64_t> heard LONGWIRE_GUARDED_BY(mutex);
};

TEST_F(KeeperClientTest, QuestionsAreHeardWhileNobodyWaits) {
  for (uint64_t request : {1, 2, 3}) Say(keeper::Reclaim{request, 0, 0, false});
  AwaitHeard(3);
  EXPECT_EQ(Heard(), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(KeeperClientTest, QuestionsAreHeardAndAnsweredWhileALeaseWaits) {
  std::atomic<int> code = -1;
  std::thread lease([&] {
    std::vector<KeeperClient::Chunk> chunks;
    std::string sentence;
    code = client->Lease({4096}, false, &chunks, &sentence);
  });
  uint64_t request = Next<keeper::Lease>().request;
  Say(keeper::Reclaim{5, 100, 0, false});
  AwaitHeard(1);
  client->Return({7, 8});
  client->Reclaimed({5, 4096, 0});
  EXPECT_EQ(Next<keeper::Return>().chunks, (std::vector<uint64_t>{7, 8}));
  EXPECT_EQ(Next<keeper::Reclaimed>().request, 5u);
  EXPECT_EQ(code, -1);
  Say(keeper::Refuse{request, 2, "none", 0});
  lease.join();
  EXPECT_EQ(code, 2);
}

TEST_F(KeeperClientTest, ASuccessorHearsWhatIsHeldAndWhatHasNoAnswer) {
  std::vector<KeeperClient::Chunk> chunks;
  std::thread lease([&] {
    std::string sentence;
    EXPECT_EQ(client->Lease({4096, 8192}, false, &chunks, &sentence), 0);
  });
  wire::Descriptor end, other;
  ASSERT_TRUE(wire::LocalPair(&end, &other));
  const int files[] = {end.get(), other.get()};
  auto grant = [&](uint64_t request, uint64_t chunk, bool more) {
    keeper::Grant part{request, more, {{chunk, 4096}}};
    if (!more) part.chunks.push_back({chunk + 1, 8192});
    auto packet = message::Pack(part);
    ASSERT_TRUE(wire::SendMessage(keeper.get(), packet, std::span(files).first(more ? 1 : 2)));
  };
  uint64_t request = Next<keeper::Lease>().request;
  grant(request, 7, true);  // and the rest never comes
  for (uint64_t successor : {1, 2}) {
    Say(keeper::Reattach{successor});
    auto held = Next<keeper::Held>();
    EXPECT_EQ(held.keeper, successor);
    EXPECT_TRUE(held.chunks.empty());
    EXPECT_EQ(Next<keeper::Lease>().request, request);
  }
  grant(request, 17, false);
  lease.join();
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].id, 17u);
  client->Return({18});
  Next<keeper::Return>();
  Say(keeper::Reattach{3});
  EXPECT_EQ(Next<keeper::Held>().chunks, (std::vector<uint64_t>{17}));
}

TEST_F(KeeperClientTest, AnswersReachWhoAskedThoughAnotherThreadListens) {
  std::thread asks([&] {
    for (int i = 0; i < 200; ++i) {
      keeper::Info info;
      EXPECT_EQ(client->Info(&info), 0);
      EXPECT_EQ(info.free, static_cast<uint64_t>(i));
    }
  });
  for (uint64_t i = 0; i < 200; ++i) {
    uint64_t request = Next<keeper::GetInfo>().request;
    if (i % 3 == 0) Say(keeper::Reclaim{i, 0, 0, false});
    Say(keeper::Info{request, i, 0, 0});
  }
  asks.join();
  AwaitHeard(67);
}

TEST_F(KeeperClientTest, TheEndOfTheKeeperAndOfTheClientAreNoticed) {
  keeper.Reset();
  keeper::Info info;
  info.free = 5;
  EXPECT_EQ(client->Info(&info), 0);
  EXPECT_EQ(info.free, 0u) << "nothing is free for this session any more";
  std::vector<KeeperClient::Chunk> chunks;
  std::string sentence;
  EXPECT_EQ(client->Lease({4096}, false, &chunks, &sentence), 2);
  EXPECT_NE(sentence.find("keeps what it has"), std::string::npos) << sentence;
  client.reset();
  SetUp();
  client.reset();
  EXPECT_TRUE(Heard().empty());
}

// A keeper that says by a page what is free.
class KnownInfoTest : public KeeperClientTest {
 protected:
  // Asks, and answers that. The first answer brings the page.
  uint64_t Ask(uint64_t free) {
    keeper::Info info;
    std::thread asks([&] { EXPECT_EQ(client->Info(&info), 0); });
    Answer(free);
    asks.join();
    return info.free;
  }
  void Answer(uint64_t free) {
    keeper::Info info{Next<keeper::GetInfo>().request, free, 100, 2};
    if (page != nullptr) return Say(info);
    page = keeper::InfoPage::Create();
    ASSERT_NE(page, nullptr);
    page->Write(info, keeper::InfoTime::max());
    const int file[] = {page->descriptor()};
    ASSERT_TRUE(wire::SendMessage(keeper.get(), message::Pack(info), file));
  }
  static constexpr uint64_t kNothing = UINT64_MAX;
  uint64_t Known() {
    keeper::Info info;
    return client->KnownInfo(&info) ? info.free : kNothing;
  }
  // True if what is known becomes that.
  bool Comes(uint64_t free) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (Known() != free && std::chrono::steady_clock::now() < end) usleep(500);
    return Known() == free;
  }

  std::unique_ptr<keeper::InfoPage> page;
};

TEST_F(KnownInfoTest, NothingIsSaidToTheKeeperThatHasWrittenItDown) {
  EXPECT_EQ(Known(), kNothing);
  EXPECT_EQ(Ask(40), 40u);
  EXPECT_EQ(Known(), 40u);
  page->Write({0, 30, 100, 2}, keeper::InfoTime::max());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Known(), 30u);
  EXPECT_FALSE(wire::ReceiveMessage(keeper.get(), milliseconds(0)));
  page->Write({0, 30, 100, 2}, keeper::InfoTime::min());
  EXPECT_EQ(Known(), kNothing);
}

TEST_F(KnownInfoTest, WhatIsReturnedIsSeenByTheNextQuestion) {
  Ask(40);
  client->Return({7});
  EXPECT_EQ(Known(), kNothing) << "the keeper may not have read it";
  Next<keeper::Return>();
  page->Write({0, 60, 100, 2}, keeper::InfoTime::max());
  EXPECT_EQ(Ask(60), 60u);
  EXPECT_EQ(Known(), 60u);
}

TEST_F(KnownInfoTest, WhatIsChangedOnOtherDevicesIsAskedFor) {
  KeeperClient other(-1);
  client->SetOthers({&other});
  Ask(40);
  EXPECT_EQ(Known(), 40u);
  other.Return({7});
  EXPECT_EQ(Known(), kNothing);
  Ask(40);
  EXPECT_EQ(Known(), 40u);
}

TEST_F(KnownInfoTest, ASuccessorBringsItsOwnPage) {
  Ask(40);
  Say(keeper::Reattach{1});
  Next<keeper::Held>();
  EXPECT_TRUE(Comes(kNothing)) << "nobody writes the old one";
  page.reset();
  EXPECT_EQ(Ask(50), 50u);
  EXPECT_EQ(Known(), 50u);
}

TEST_F(KnownInfoTest, WithoutAKeeperThePageSaysNothing) {
  Ask(40);
  keeper.Reset();
  EXPECT_TRUE(Comes(kNothing));
  keeper::Info info;
  EXPECT_EQ(client->Info(&info), 0);
  EXPECT_EQ(info.free, 0u);
  EXPECT_EQ(info.total, 100u);
}

// A keeper before anybody listens to it: the test answers a Hello.
class GreetingTest : public testing::Test {
 protected:
  void SetUp() override {
    wire::Descriptor ours;
    ASSERT_TRUE(wire::LocalPair(&ours, &keeper_));
    client_ = std::make_unique<KeeperClient>(ours.Release());
  }

  template <class M>
  void Say(const M& message) {
    ASSERT_TRUE(wire::SendMessage(keeper_.get(), message::Pack(message)));
  }

  // What the client said; it is a request of the version before.
  keeper::Borrow Said() {
    keeper::Borrow said;
    auto packet = wire::ReceiveMessage(keeper_.get(), kPatience);
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &said) == wire::WireResult::kOk);
    return said;
  }

  wire::Descriptor keeper_;
  std::unique_ptr<KeeperClient> client_;
  std::string sentence_;
};

TEST_F(GreetingTest, AKeeperSaysItsVersions) {
  Say(message::Hello{});
  EXPECT_EQ(client_->Greet(&sentence_), 0) << sentence_;
  EXPECT_EQ(message::HelloIn(Said().token), wire::SpokenVersions());
}

TEST_F(GreetingTest, AKeeperOfTheVersionBeforeHasNoSuchMemory) {
  Say(keeper::Refuse{1, 1, "no memory is shared under this token", 0});
  EXPECT_EQ(client_->Greet(&sentence_), 0) << sentence_;
}

TEST_F(GreetingTest, QuestionsOfBeforeAreNotLost) {
  Say(keeper::Reclaim{5, 0, 0, false});
  Say(message::Hello{});
  EXPECT_EQ(client_->Greet(&sentence_), 0) << sentence_;
  uint64_t heard = 0;
  client_->Listen([&](const keeper::Reclaim& asked) { heard = asked.request; });
  EXPECT_EQ(heard, 5u);
}

TEST_F(GreetingTest, NothingInCommonIsSaid) {
  Say(message::Hello{15, 16});
  EXPECT_EQ(client_->Greet(&sentence_), 803);
  EXPECT_EQ(sentence_,
            "longwire-worker speaks protocol 13 to 14, longwire-keeper protocol 15 to 16: upgrade "
            "longwire-worker");
}

TEST_F(GreetingTest, AHostileRangeIsNone) {
  Say(message::Hello{14, 13});
  EXPECT_EQ(client_->Greet(&sentence_), 803);
}

TEST_F(GreetingTest, AKeeperOfTheVersionBeforeDoesNotCharge) {
  Say(keeper::Refuse{1, 1, "no memory is shared under this token", 0});
  EXPECT_EQ(client_->Greet(&sentence_), 0) << sentence_;
  Said();
  uint64_t charged = 0;
  EXPECT_EQ(client_->Charge(5, 9, &charged, &sentence_), 0);
  EXPECT_EQ(charged, 5u);
  client_->Uncharge(5);
  EXPECT_FALSE(wire::ReceiveMessage(keeper_.get(), std::chrono::milliseconds(50)));
}

TEST_F(GreetingTest, ChargesAreAnsweredOrRefused) {
  Say(message::Hello{});
  EXPECT_EQ(client_->Greet(&sentence_), 0) << sentence_;
  Said();
  uint64_t charged = 0;
  Say(keeper::Charged{2, 9});
  EXPECT_EQ(client_->Charge(5, 9, &charged, &sentence_), 0);
  EXPECT_EQ(charged, 9u);
  Say(keeper::Refuse{3, 2, "no room", 0});
  EXPECT_EQ(client_->Charge(5, 9, &charged, &sentence_), 2);
  EXPECT_EQ(sentence_, "no room");
  keeper_.Reset();
  EXPECT_EQ(client_->Charge(5, 9, &charged, &sentence_), 0) << "nobody counts any more";
}

TEST_F(GreetingTest, AKeeperThatIsGoneIsFoundOutByTheFirstLease) {
  keeper_.Reset();
  EXPECT_EQ(client_->Greet(&sentence_), 0);
}

}  // namespace
}  // namespace longwire::worker
