#include "server/admission/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <list>
#include <string>
#include <vector>

#include "base/poll_set.h"
#include "wire/descriptors.h"

namespace longwire::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const Connections::Clock::time_point kStart{seconds(1000)};

// Pairs of connected TCP sockets.
class ConnectionsTest : public testing::Test {
 protected:
  struct Pair {
    wire::Descriptor theirs, ours;
    bool IsClosed() const {
      return (base::PollOne(theirs.get(), POLLRDHUP, milliseconds(0)) & POLLRDHUP) != 0;
    }
  };

  void SetUp() override {
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listener_.get(), 128), 0);
  }

  Pair& Connect() {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    Pair& pair = pairs_.emplace_back();
    pair.theirs.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(pair.theirs.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    pair.ours.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return pair;
  }

  Pair& Arrive(const std::string& peer, Connections::Clock::time_point now = kStart) {
    Pair& pair = Connect();
    EXPECT_TRUE(connections_.Arrived(pair.ours.get(), peer, now));
    return pair;
  }

  Connections::Limits limits_{3, 5, 64 << 20, seconds(10)};
  Connections connections_{[this] { return limits_; }};
  wire::Descriptor listener_;
  std::list<Pair> pairs_;
};

TEST_F(ConnectionsTest, TheOldestOfAnAddressGoes) {
  Pair& neighbour = Arrive("192.0.2.9:1");
  std::vector<Pair*> flood;
  for (int i = 0; i < 4; ++i) {
    flood.push_back(&Arrive("192.0.2.1:" + std::to_string(i), kStart + milliseconds(i)));
  }
  EXPECT_TRUE(flood[0]->IsClosed());
  EXPECT_FALSE(flood[1]->IsClosed() || flood[2]->IsClosed() || flood[3]->IsClosed());
  EXPECT_FALSE(neighbour.IsClosed());
}

TEST_F(ConnectionsTest, SilentOnesGoBeforeThoseThatSpeak) {
  Pair& speaks = Arrive("192.0.2.1:1");
  ASSERT_EQ(send(speaks.theirs.get(), "hello", 5, 0), 5);
  for (int i = 2; i < 7; ++i) Arrive("192.0.2.1:" + std::to_string(i), kStart + milliseconds(i));
  EXPECT_FALSE(speaks.IsClosed());
}

TEST_F(ConnectionsTest, TheAddressWithMostMakesRoomForOthers) {
  Pair& neighbour = Arrive("192.0.2.9:1");
  std::vector<Pair*> flood;
  for (int i = 0; i < 3; ++i) {
    flood.push_back(&Arrive("192.0.2.1:" + std::to_string(i), kStart + milliseconds(i)));
  }
  Arrive("192.0.2.2:1");
  Arrive("192.0.2.3:1");
  EXPECT_TRUE(flood[0]->IsClosed());
  EXPECT_FALSE(neighbour.IsClosed());
}

TEST_F(ConnectionsTest, WhoHasASessionIsNotCounted) {
  for (int i = 0; i < 20; ++i) {
    std::string peer = "192.0.2.1:" + std::to_string(i);
    Arrive(peer);
    connections_.Attached(peer);
  }
  for (const Pair& pair : pairs_) EXPECT_FALSE(pair.IsClosed());
  EXPECT_EQ(connections_.figures().waiting, 0u);
  connections_.Detached("192.0.2.1:0", kStart);
  EXPECT_EQ(connections_.figures().waiting, 1u);
}

TEST_F(ConnectionsTest, SilentOnesEndInTime) {
  Pair& silent = Arrive("192.0.2.1:1");
  Pair& used = Arrive("192.0.2.1:2");
  Pair& zone = Arrive("[fe80::1%2]:3");
  connections_.Used("192.0.2.1:2");
  connections_.Used("[fe80::1%eth0]:3");
  EXPECT_GT(connections_.Sweep(kStart + seconds(9)).count(), 0);
  EXPECT_FALSE(silent.IsClosed());
  connections_.Sweep(kStart + seconds(10));
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_FALSE(used.IsClosed() || zone.IsClosed());
}

TEST_F(ConnectionsTest, NobodySendsWithoutEnd) {
  Pair& sender = Arrive("192.0.2.1:1");
  Pair& session = Arrive("192.0.2.1:2");
  connections_.Used("192.0.2.1:1");
  connections_.Attached("192.0.2.1:2");
  std::vector<char> bytes(1 << 20);
  for (Pair* pair : {&sender, &session}) {
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(send(pair->theirs.get(), bytes.data(), bytes.size() / 2, 0),
                static_cast<ssize_t>(bytes.size() / 2));
      for (size_t got = 0; got < bytes.size() / 2;) {
        got += static_cast<size_t>(recv(pair->ours.get(), bytes.data(), bytes.size(), 0));
      }
    }
  }
  connections_.Sweep(kStart + seconds(1));
  EXPECT_FALSE(sender.IsClosed());  // 3 MiB
  limits_.bytes = 2 << 20;
  connections_.Sweep(kStart + seconds(2));
  EXPECT_TRUE(sender.IsClosed());
  EXPECT_FALSE(session.IsClosed());
}

TEST_F(ConnectionsTest, WhatIsClosedIsForgotten) {
  Pair& pair = Arrive("192.0.2.1:1");
  pair.ours.Reset();
  wire::Descriptor other(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // the same number
  EXPECT_EQ(connections_.figures().waiting, 0u);
  EXPECT_LT(connections_.Sweep(kStart).count(), 0);
}

}  // namespace
}  // namespace longwire::admission
