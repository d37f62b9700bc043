// Memory that is kept for a session because its program declared that it needs it: nobody else gets
// it, used or not, and its tenant is charged for it. The test plays the warden and the workers.
#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

// 960 MiB can be lent.
class KeeperPromisesTest : public ChargingKeeperTest {
 protected:
  void SetUp() override { StartCharging(2, 512 * kMiB); }

  Promised Answered() {
    Promised promised;
    for (int i = 0; i < 100; ++i) {
      auto packet = wire::ReceiveMessage(control.get(), milliseconds(5000));
      if (!packet) break;
      if (message::Unpack(packet->bytes, &promised) == wire::WireResult::kOk) return promised;
    }
    ADD_FAILURE() << "the keeper says nothing";
    return promised;
  }

  Promised Promise(uint64_t worker, uint32_t tenant, uint64_t bytes) {
    Say(control, Assign{worker, tenant, bytes});
    Promised promised = Answered();
    EXPECT_EQ(promised.worker, worker);
    return promised;
  }

  static uint64_t Free(const wire::Descriptor& worker) {
    Say(worker, GetInfo{9});
    Info info;
    while (auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000))) {
      if (message::Unpack(packet->bytes, &info) == wire::WireResult::kOk) return info.free;
    }
    ADD_FAILURE() << "the keeper says nothing";
    return 0;
  }

  bool ChargedSoon(uint32_t tenant, uint64_t bytes) {
    for (int i = 0; i < 5000 && ledger_->charged(tenant) != bytes; ++i) usleep(1000);
    return ledger_->charged(tenant) == bytes;
  }
};

TEST_F(KeeperPromisesTest, NobodyElseGetsWhatWasPromised) {
  wire::Descriptor first = Attach(1), other = AttachAs(2, 3);
  EXPECT_EQ(Promise(1, 1, 700 * kMiB).code, kSuccess);
  EXPECT_EQ(Free(other), 260 * kMiB);
  EXPECT_EQ(Free(first), 960 * kMiB);
  Refuse refused = Ask(other, {262 * kMiB}).refuse;
  EXPECT_EQ(refused.code, kOutOfMemory);
  EXPECT_EQ(refused.sentence,
            std::to_string(262 * kMiB) + " bytes asked for, " + std::to_string(260 * kMiB) +
                " of " + std::to_string(960 * kMiB) + " free; " + std::to_string(700 * kMiB) +
                " are kept for other sessions, which declared that they need them "
                "(longwire run --memory)");
  EXPECT_EQ(Ask(other, {260 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(Ask(other, {2 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_EQ(Free(other), 0u);
  // All of it, in as many pieces as it likes, and nothing beyond.
  EXPECT_EQ(Ask(first, {512 * kMiB, 100 * kMiB}).chunks.size(), 2u);
  EXPECT_EQ(Ask(first, {88 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(Ask(first, {2 * kMiB}).refuse.code, kOutOfMemory);
}

TEST_F(KeeperPromisesTest, TheDriversOwnMemoryIsNotTakenFromIt) {
  wire::Descriptor first = Attach(1), other = AttachAs(2, 3);
  EXPECT_EQ(Promise(1, 1, 700 * kMiB).code, kSuccess);
  Say(other, Charge{9, 326 * kMiB, 326 * kMiB});
  EXPECT_EQ(Hear(other).refuse.code, kOutOfMemory);
  Say(other, Charge{9, 324 * kMiB, 324 * kMiB});
  Charged charged;
  auto packet = wire::ReceiveMessage(other.get(), milliseconds(5000));
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &charged) == wire::WireResult::kOk);
  // The reserve is used up, too: what is left for leases is the promise.
  EXPECT_EQ(Ask(other, {2 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_EQ(Ask(first, {700 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperPromisesTest, WhatIsGivenBackStaysKeptUntilTheEnd) {
  wire::Descriptor first = Attach(1), other = AttachAs(2, 3);
  EXPECT_EQ(Promise(1, 1, 700 * kMiB).code, kSuccess);
  Answer had = Ask(first, {700 * kMiB});
  ASSERT_EQ(had.chunks.size(), 1u);
  Say(first, Return{{had.chunks[0].chunk}});
  EXPECT_EQ(Free(first), 960 * kMiB);
  EXPECT_EQ(Ask(other, {262 * kMiB}).refuse.code, kOutOfMemory);
  first.Reset();
  EXPECT_EQ(Ask(other, {960 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperPromisesTest, TheTenantIsChargedForTheLargerOfPromisedAndUsed) {
  wire::Descriptor first = Attach(1), sibling = AttachAs(2, 2);
  EXPECT_EQ(Promise(1, 2, 600 * kMiB).code, kOutOfMemory);
  EXPECT_EQ(ledger_->charged(2), 0u);
  EXPECT_EQ(Promise(1, 2, 300 * kMiB).code, kSuccess);
  EXPECT_EQ(ledger_->charged(2), 300 * kMiB);
  EXPECT_EQ(Free(sibling), 212 * kMiB);
  EXPECT_EQ(Free(first), 512 * kMiB);
  Answer had = Ask(first, {200 * kMiB, 200 * kMiB});
  ASSERT_EQ(had.chunks.size(), 2u);
  EXPECT_EQ(ledger_->charged(2), 400 * kMiB);
  EXPECT_EQ(Ask(sibling, {114 * kMiB}).refuse.code, kOutOfMemory);
  Say(first, Return{{had.chunks[0].chunk}});
  EXPECT_TRUE(ChargedSoon(2, 300 * kMiB));
  Say(first, Return{{had.chunks[1].chunk}});
  EXPECT_EQ(Free(first), 512 * kMiB);
  EXPECT_EQ(ledger_->charged(2), 300 * kMiB);
  first.Reset();
  EXPECT_TRUE(ChargedSoon(2, 0));
}

TEST_F(KeeperPromisesTest, WhatIsNotThereIsNotPromised) {
  wire::Descriptor first = Attach(1), second = Attach(2), other = AttachAs(3, 3);
  Promised large = Promise(1, 1, 962 * kMiB);
  EXPECT_EQ(large.code, kOutOfMemory);
  EXPECT_EQ(large.sentence, std::to_string(962 * kMiB) +
                                " bytes declared, more than the device's " +
                                std::to_string(960 * kMiB));
  EXPECT_EQ(Promise(1, 1, 500 * kMiB).code, kSuccess);
  EXPECT_EQ(Promise(2, 1, 462 * kMiB).code, kOutOfMemory);
  EXPECT_EQ(Free(other), 460 * kMiB) << "nothing is kept for the second";
  EXPECT_EQ(Promise(2, 1, 460 * kMiB).code, kSuccess);
  EXPECT_EQ(Free(other), 0u);
  EXPECT_EQ(Ask(first, {500 * kMiB}).chunks.size(), 1u);
  EXPECT_EQ(Ask(second, {460 * kMiB}).chunks.size(), 1u);
}

TEST_F(KeeperPromisesTest, SessionsAreAskedForWhatTheyKeepFreeButNotOfTheirPromises) {
  wire::Descriptor keeps = Attach(1), idle = AttachAs(2, 3), wants = Attach(3);
  EXPECT_EQ(Promise(1, 1, 400 * kMiB).code, kSuccess);
  EXPECT_EQ(Ask(keeps, {400 * kMiB}).chunks.size(), 1u);
  Answer had = Ask(idle, {500 * kMiB});
  Say(control, Assign{3, 1, 300 * kMiB});
  Reclaim reclaim;
  auto packet = wire::ReceiveMessage(idle.get(), milliseconds(5000));
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk);
  EXPECT_EQ(reclaim.bytes, 240 * kMiB);
  Say(idle, Return{{had.chunks[0].chunk}});
  Say(idle, Reclaimed{reclaim.request, 500 * kMiB, 0});
  EXPECT_EQ(Answered().code, kSuccess);
  EXPECT_FALSE(wire::ReceiveMessage(keeps.get(), milliseconds(60)).has_value());
}

}  // namespace
}  // namespace longwire::keeper
