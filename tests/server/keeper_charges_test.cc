// Memory that the driver allocates in workers: charged to tenants like leases, without chunks.
#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

class KeeperChargesTest : public ChargingKeeperTest {
 protected:
  void SetUp() override { StartCharging(1, 256 * kMiB); }

  // Bytes that were charged; 0: refused, and why.
  uint64_t Take(const wire::Descriptor& socket, uint64_t bytes, uint64_t most = 0) {
    Say(socket, Charge{9, bytes, std::max(bytes, most)});
    auto packet = wire::ReceiveMessage(socket.get(), milliseconds(5000));
    Reclaim reclaim;
    while (packet && message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk) {
      Say(socket, Reclaimed{reclaim.request, 0, 0});  // it keeps nothing free
      packet = wire::ReceiveMessage(socket.get(), milliseconds(5000));
    }
    Charged charged;
    refuse_ = {};
    if (!packet) return 0;
    if (message::Unpack(packet->bytes, &charged) == wire::WireResult::kOk) {
      EXPECT_EQ(charged.request, 9u);
      return charged.bytes;
    }
    EXPECT_EQ(message::Unpack(packet->bytes, &refuse_), wire::WireResult::kOk);
    return 0;
  }

  bool ChargedSoon(uint32_t tenant, uint64_t bytes) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (ledger_->charged(tenant) != bytes) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  Refuse refuse_;
};

TEST_F(KeeperChargesTest, TheLimitHoldsForLeasesAndChargesTogether) {
  wire::Descriptor worker = AttachAs(1, 1);
  EXPECT_EQ(Take(worker, 100 * kMiB), 100 * kMiB);
  EXPECT_EQ(Ask(worker, {100 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(Take(worker, 57 * kMiB), 0u);
  EXPECT_EQ(refuse_.code, kOutOfMemory);
  EXPECT_EQ(refuse_.sentence,
            std::to_string(57 * kMiB) + " bytes asked for, " + std::to_string(56 * kMiB) +
                " left of the tenant's memory limit of " + std::to_string(256 * kMiB));
  EXPECT_EQ(Take(worker, 56 * kMiB), 56 * kMiB);
  EXPECT_EQ(Ask(worker, {2 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_EQ(ledger_->charged(1), 256 * kMiB);
}

TEST_F(KeeperChargesTest, WithoutALimitMoreIsGivenAtOnce) {
  wire::Descriptor limited = AttachAs(1, 1), unlimited = AttachAs(2, 2);
  EXPECT_EQ(Take(limited, kMiB, 32 * kMiB), kMiB);
  EXPECT_EQ(Take(unlimited, kMiB, 32 * kMiB), 32 * kMiB);
}

TEST_F(KeeperChargesTest, WhatIsGivenBackIsThereAtOnceAndNotTwice) {
  wire::Descriptor worker = AttachAs(1, 1), sibling = AttachAs(2, 1);
  EXPECT_EQ(Take(worker, 200 * kMiB), 200 * kMiB);
  Say(worker, Uncharge{150 * kMiB});
  EXPECT_TRUE(ChargedSoon(1, 50 * kMiB));
  EXPECT_EQ(Take(sibling, 200 * kMiB), 200 * kMiB);
  Say(worker, Uncharge{UINT64_MAX});
  EXPECT_TRUE(ChargedSoon(1, 200 * kMiB));
  EXPECT_EQ(Take(worker, 60 * kMiB), 0u);
}

TEST_F(KeeperChargesTest, AWorkersEndGivesBackWhatItHas) {
  wire::Descriptor worker = AttachAs(1, 1);
  EXPECT_EQ(Take(worker, 256 * kMiB), 256 * kMiB);
  worker.Reset();
  EXPECT_TRUE(ChargedSoon(1, 0));
}

TEST_F(KeeperChargesTest, ASessionIsAskedForWhatItKeepsFree) {
  wire::Descriptor worker = AttachAs(1, 1);
  Answer lease = Ask(worker, {64 * kMiB, 64 * kMiB});
  ASSERT_EQ(lease.chunks.size(), 2u);
  Say(worker, Charge{9, 150 * kMiB, 150 * kMiB});
  auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
  Reclaim reclaim;
  ASSERT_TRUE(packet);
  ASSERT_EQ(message::Unpack(packet->bytes, &reclaim), wire::WireResult::kOk);
  EXPECT_EQ(reclaim.bytes, 22 * kMiB);
  Say(worker, Return{{lease.chunks[0].chunk}});
  Say(worker, Reclaimed{reclaim.request, 64 * kMiB, 0});
  packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
  Charged charged;
  ASSERT_TRUE(packet);
  ASSERT_EQ(message::Unpack(packet->bytes, &charged), wire::WireResult::kOk);
  EXPECT_EQ(charged.bytes, 150 * kMiB);
}

TEST_F(KeeperChargesTest, ImpossibleChargesAreRefused) {
  wire::Descriptor worker = AttachAs(1, 2);
  EXPECT_EQ(Take(worker, 0), 0u);
  EXPECT_EQ(refuse_.code, kInvalidValue);
  EXPECT_EQ(Take(worker, UINT64_MAX), 0u);
  EXPECT_EQ(refuse_.code, kOutOfMemory);
  EXPECT_EQ(Take(worker, 1024 * kMiB + 1), 0u);
  EXPECT_EQ(Take(worker, kMiB), kMiB) << "the connection is as good as before";
}

TEST_F(KeeperChargesTest, TheWardenHearsWhatIsCharged) {
  wire::Descriptor worker = AttachAs(1, 1);
  EXPECT_EQ(Take(worker, 5 * kMiB), 5 * kMiB);
  KeeperState state =
      State([](const KeeperState& now) { return now.charges && !now.charges->workers.empty(); });
  ASSERT_TRUE(state.charges);
  ASSERT_EQ(state.charges->workers.size(), 1u);
  EXPECT_EQ(state.charges->workers[0].bytes, 5 * kMiB);
  EXPECT_EQ(state.leased, 0u);
}

}  // namespace
}  // namespace longwire::keeper
