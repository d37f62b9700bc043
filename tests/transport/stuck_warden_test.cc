// A warden that is stopped, or does not read: nobody who asks it waits beyond their time.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "server/daemon/sessions/warden_client.h"
#include "server/protocol/hello.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StuckWardenTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/longwire-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    listener_ = wire::ListenLocal(path());
    ASSERT_TRUE(listener_.valid());
  }
  void TearDown() override {
    connection_.Reset();
    listener_.Reset();
    client_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/warden"; }
  void MakeClient() {
    WardenClient::Events events{[](const warden::WorkerDied&) {}, [] {}};
    auto starter = [](std::string* sentence) {
      *sentence = "none is started";
      return false;
    };
    client_ = std::make_unique<WardenClient>(path(), starter, events);
  }
  // It greets, and then reads nothing.
  void Connect() {
    std::thread warden([this] {
      connection_ = wire::AcceptLocal(listener_.get());
      auto hello = wire::ReceiveMessage(connection_.get(), seconds(10));
      if (hello) wire::SendMessage(connection_.get(), message::Pack(message::Hello{}));
    });
    MakeClient();
    std::string sentence;
    EXPECT_TRUE(client_->Connect(&sentence)) << sentence;
    warden.join();
  }

  // How long it took; the test ends here if it takes for ever.
  static milliseconds TimeOf(const std::function<void()>& work) {
    std::atomic<bool> done{false};
    auto begun = Clock::now();
    std::thread thread([&] {
      work();
      done.store(true);
    });
    while (!done.load() && Clock::now() - begun < seconds(30)) {
      std::this_thread::sleep_for(milliseconds(2));
    }
    if (!done.load()) {
      std::fprintf(stderr, "[  FAILED  ] a call never returned\n");
      std::_Exit(1);
    }
    thread.join();
    return std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
  }

  std::string folder_;
  wire::Descriptor listener_, connection_;
  std::unique_ptr<WardenClient> client_;
};

TEST_F(StuckWardenTest, WhatItDoesNotReadHoldsNobodyUp) {
  Connect();
  EXPECT_LT(TimeOf([&] {
              for (uint64_t session = 1; session <= 10'000; ++session) client_->Kill(session);
            }),
            seconds(5));
  std::string sentence;
  EXPECT_LT(TimeOf([&] { EXPECT_FALSE(client_->GetStats(&sentence)); }), seconds(6));
  EXPECT_EQ(sentence, "longwire-warden does not answer");
}

TEST_F(StuckWardenTest, NothingOfItIsLostOrOutOfOrder) {
  Connect();
  constexpr uint64_t kSessions = 5000;
  TimeOf([&] {
    for (uint64_t session = 1; session <= kSessions; ++session) client_->Kill(session);
  });
  for (uint64_t session = 1; session <= kSessions; ++session) {
    auto packet = wire::ReceiveMessage(connection_.get(), seconds(10));
    warden::KillWorker kill;
    ASSERT_TRUE(packet && message::Unpack(packet->bytes, &kill) == wire::WireResult::kOk);
    ASSERT_EQ(kill.session, session);
  }
}

TEST_F(StuckWardenTest, ManyWhoAskWaitForTheSameAttempt) {
  MakeClient();  // it accepts nobody
  auto ask = [&] {
    std::string sentence;
    EXPECT_FALSE(client_->GetStats(&sentence));
    EXPECT_NE(sentence.find("longwire-warden does not answer"), std::string::npos) << sentence;
  };
  EXPECT_LT(TimeOf([&] {
              std::vector<std::thread> threads;
              for (int i = 0; i < 8; ++i) threads.emplace_back(ask);
              for (std::thread& thread : threads) thread.join();
            }),
            seconds(8));
}

TEST_F(StuckWardenTest, AFullQueueOfConnectionsHoldsNobodyUp) {
  std::vector<wire::Descriptor> crowd;
  while (true) {
    wire::Descriptor one = wire::ConnectLocal(path(), milliseconds(50));
    if (!one.valid()) break;
    crowd.push_back(std::move(one));
  }
  MakeClient();
  std::string sentence;
  EXPECT_LT(TimeOf([&] { EXPECT_FALSE(client_->GetStats(&sentence)); }), seconds(8));
}

}  // namespace
}  // namespace longwire::daemon
