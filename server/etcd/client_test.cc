// The client against three real members of etcd: what each call does, and that it goes on when a
// member is killed or does not answer.
#include "server/etcd/client.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "server/etcd/lease.h"
#include "server/etcd/mirror.h"
#include "server/etcd/testing/cluster.h"

namespace longwire::etcd {
namespace {

using Clock = std::chrono::steady_clock;

using etcd_testing::Cluster;
using etcd_testing::kMembers;
using etcd_testing::Within;

TEST_F(Cluster, TransactionsCompareWhatTheyAreBuiltOn) {
  pb::TxnRequest request;
  pb::TxnResponse reply;
  std::string sentence;
  *request.add_compare() = Absent("box");
  *request.add_success() = PutOp("box", "one");
  *request.add_failure() = ReadOp("box");
  ASSERT_TRUE(client_->Txn(request, &reply, &sentence)) << sentence;
  EXPECT_TRUE(reply.succeeded());
  const int64_t made = reply.header().revision();
  ASSERT_TRUE(client_->Txn(request, &reply, &sentence)) << sentence;
  EXPECT_FALSE(reply.succeeded());
  ASSERT_EQ(reply.responses_size(), 1);
  const pb::KeyValue& found = reply.responses(0).response_range().kvs(0);
  EXPECT_EQ(found.value(), "one");
  EXPECT_EQ(found.create_revision(), made);
  request.Clear();
  *request.add_compare() = ChangedAt("box", made);
  *request.add_compare() = CreatedAt("box", made);
  *request.add_success() = PutOp("box", "two");
  ASSERT_TRUE(client_->Txn(request, &reply, &sentence));
  EXPECT_TRUE(reply.succeeded());
  ASSERT_TRUE(client_->Txn(request, &reply, &sentence));
  EXPECT_FALSE(reply.succeeded()) << "it has changed since";
  EXPECT_EQ(Get("box"), "two");
  pb::DeleteRangeRequest gone;
  pb::DeleteRangeResponse deleted;
  gone.set_key("box");
  ASSERT_TRUE(client_->Delete(gone, &deleted, &sentence));
  EXPECT_EQ(deleted.deleted(), 1);
  EXPECT_EQ(Get("box"), "-");
}

TEST_F(Cluster, WhatIsWrongIsSaidAndNotTriedElsewhere) {
  std::string sentence;
  const auto began = Clock::now();
  EXPECT_FALSE(Put("box", "one", &sentence, 4711));
  EXPECT_NE(sentence.find("requested lease not found"), std::string::npos) << sentence;
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(1));
}

TEST_F(Cluster, LeasesTakeTheirKeysWithThem) {
  int64_t lease = 0;
  std::string sentence;
  bool alive = false;
  ASSERT_TRUE(client_->Grant(30, &lease, &sentence)) << sentence;
  ASSERT_TRUE(Put("box", "one", &sentence, lease));
  ASSERT_TRUE(client_->KeepAlive(lease, &alive, &sentence)) << sentence;
  EXPECT_TRUE(alive);
  ASSERT_TRUE(client_->Revoke(lease, &sentence)) << sentence;
  EXPECT_EQ(Get("box"), "-");
  ASSERT_TRUE(client_->KeepAlive(lease, &alive, &sentence));
  EXPECT_FALSE(alive);
}

TEST_F(Cluster, ALeaseIsKeptAndReplacedWhenItIsLost) {
  Lease lease(*client_, 2);
  std::string sentence;
  ASSERT_TRUE(lease.Start(&sentence));
  ASSERT_TRUE(Within(10, [&] { return lease.id() != 0; }));
  const int64_t first = lease.id();
  ASSERT_TRUE(Put("box", "one", &sentence, first));
  std::this_thread::sleep_for(std::chrono::seconds(5));
  EXPECT_EQ(lease.id(), first);
  EXPECT_EQ(Get("box"), "one");
  ASSERT_TRUE(client_->Revoke(first, &sentence));
  EXPECT_TRUE(Within(10, [&] { return lease.id() != 0 && lease.id() != first; }));
  ASSERT_TRUE(Put("box", "two", &sentence, lease.id()));
  lease.Stop();
  EXPECT_EQ(Get("box"), "-");
}

TEST_F(Cluster, AMirrorFollowsAlsoWhenItsMemberIsKilled) {
  std::string sentence;
  std::atomic<int> changes{0};
  ASSERT_TRUE(Put("house/a", "1", &sentence));
  Mirror mirror(*client_, "house/", [&] { ++changes; });
  ASSERT_TRUE(mirror.Start(&sentence));
  Mirror::Keys keys;
  auto text = [&] {
    std::string all;
    mirror.Get(&keys);
    for (const auto& [key, kv] : keys) all += key + "=" + kv.value() + " ";
    return all;
  };
  EXPECT_TRUE(Within(10, [&] { return text() == "house/a=1 "; })) << text();
  ASSERT_TRUE(Put("house/b", "2", &sentence));
  ASSERT_TRUE(Put("other", "2", &sentence));
  EXPECT_TRUE(Within(5, [&] { return text() == "house/a=1 house/b=2 "; })) << text();
  // Whichever it watches: another one is left to go to.
  for (int i = 0; i < kMembers; ++i) {
    kill(pids_[i], SIGSTOP);
    ASSERT_TRUE(Within(30, [&] { return Put("house/a", std::to_string(10 + i), &sentence); }));
    const std::string now = "house/a=" + std::to_string(10 + i) + " house/b=2 ";
    EXPECT_TRUE(Within(45, [&] { return text() == now; })) << text();
    kill(pids_[i], SIGCONT);
    ASSERT_TRUE(Within(30, [&] { return Put("other", "3", &sentence); }));
  }
  EXPECT_GE(changes.load(), 5);
  mirror.Stop();
}

TEST_F(Cluster, AnotherMemberAnswersForOneThatIsDead) {
  std::string sentence;
  for (int i = 0; i < kMembers - 1; ++i) {
    kill(pids_[i], SIGKILL);
    if (i != 0) break;  // two of three are a majority, one is none
    const auto began = Clock::now();
    ASSERT_TRUE(Within(20, [&] { return Put("box", "one", &sentence); })) << sentence;
    EXPECT_LT(Clock::now() - began, std::chrono::seconds(15));
  }
  EXPECT_FALSE(Put("box", "two", &sentence));
  for (int port : ports_) {
    EXPECT_NE(sentence.find("etcd at 127.0.0.1:" + std::to_string(port)), std::string::npos)
        << sentence;
  }
}

}  // namespace
}  // namespace longwire::etcd
