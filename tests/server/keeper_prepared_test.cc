// Chunks that are created and scrubbed ahead of need.
#include "tests/server/keeper_fixture.h"

namespace longwire::keeper {
namespace {

constexpr uint64_t kChunk = 64 * kMiB;
constexpr uint64_t kDevice = 8192 * kMiB + kChunk;  // a 32nd of it, without the reserve: 4 chunks

class KeeperPreparedTest : public KeeperTest {
 protected:
  KeeperPreparedTest() : KeeperTest(kDevice) {}

  void Limit(uint64_t prepared, uint64_t pooled = kDevice) {
    KeeperLimits limits;
    limits.prepared = prepared;
    limits.pooled = pooled;
    Say(control, limits);
  }

  // Waits until `bytes` bytes are kept, all of them scrubbed.
  KeeperState Kept(uint64_t bytes) {
    KeeperState state =
        State([&](const KeeperState& s) { return s.idle == bytes && s.scrub_pending == 0; });
    EXPECT_EQ(state.idle, bytes);
    return state;
  }
};

TEST_F(KeeperPreparedTest, WhoNeedsMoreGetsWhatIsThereAndItIsReplaced) {
  Limit(2 * kChunk);
  Kept(2 * kChunk);
  wire::Descriptor worker = Attach(1);
  device.hold_zero_from = 0;  // no more scrubbing for now
  for (int i = 0; i < 2; ++i) {
    Answer granted = Ask(worker, {kChunk});
    ASSERT_EQ(granted.chunks.size(), 1u);
    EXPECT_EQ(Content(granted.files[0]), 0);
  }
  device.hold_zero_from = UINT64_MAX;
  KeeperState state = Kept(2 * kChunk);
  EXPECT_EQ(state.leased, 2 * kChunk);
}

// Who asks for more and more does not wait until the driver has made what replaces it.
TEST_F(KeeperPreparedTest, NothingIsMadeWhileLeasesFollowEachOther) {
  Limit(2 * kChunk);
  wire::Descriptor worker = Attach(1);
  using std::chrono::steady_clock;
  for (auto end = steady_clock::now() + std::chrono::minutes(1); steady_clock::now() < end;) {
    Kept(2 * kChunk);
    int creates = device.creates, exports = device.exports;
    auto begun = steady_clock::now();
    ASSERT_EQ(Ask(worker, {2 * kMiB}).chunks.size(), 1u);
    usleep(10'000);
    ASSERT_EQ(Ask(worker, {kChunk}).chunks.size(), 1u);
    usleep(10'000);
    int made = device.creates - creates;
    if (steady_clock::now() - begun > std::chrono::milliseconds(40)) {
      continue;  // it was no burst: the machine has other work
    }
    EXPECT_EQ(made, 1) << "the small chunk, and none ahead";
    EXPECT_EQ(device.exports, exports + 1) << "the other one was exported when it was made";
    Kept(2 * kChunk);
    return;
  }
  FAIL() << "the machine is too slow for this test";
}

TEST_F(KeeperPreparedTest, WhatCameBackIsExportedBeforeItIsLentAgain) {
  Limit(kChunk);
  Kept(kChunk);
  wire::Descriptor first = Attach(1);
  ASSERT_EQ(Ask(first, {kChunk}).chunks.size(), 1u);
  Kept(kChunk);
  int exports = device.exports;
  first.Reset();
  Kept(2 * kChunk);
  for (int i = 0; i < 500 && device.exports == exports; ++i) usleep(10'000);
  EXPECT_EQ(device.exports, exports + 1);
  wire::Descriptor second = Attach(2);
  Answer granted = Ask(second, {kChunk});
  ASSERT_EQ(granted.chunks.size(), 1u);
  EXPECT_EQ(Content(granted.files[0]), 0);
  EXPECT_EQ(device.exports, exports + 1);
}

TEST_F(KeeperPreparedTest, NoMoreThanAPartOfTheDevice) {
  Limit(64 * kChunk);
  Kept(4 * kChunk);
  usleep(100'000);
  EXPECT_EQ(device.used(), 4 * kChunk);
}

TEST_F(KeeperPreparedTest, NoMoreThanIsKeptAtAll) {
  Limit(4 * kChunk, 3 * kChunk);
  Kept(3 * kChunk);
  usleep(100'000);
  EXPECT_EQ(device.used(), 3 * kChunk);
}

// Chunks of other sizes fill what may be kept: nothing is made to be thrown away.
TEST_F(KeeperPreparedTest, WhatIsKeptAlreadyCounts) {
  Limit(0, 2 * kChunk);
  wire::Descriptor worker = Attach(1);
  ASSERT_EQ(Ask(worker, std::vector<uint64_t>(64, 2 * kMiB)).chunks.size(), 64u);
  worker.Reset();
  Kept(2 * kChunk);
  int creates = device.creates;
  Limit(2 * kChunk, 2 * kChunk);
  usleep(100'000);
  EXPECT_EQ(device.creates, creates);
}

TEST_F(KeeperPreparedTest, ItIsEverybodysWhenMemoryIsShort) {
  Limit(4 * kChunk);
  Kept(4 * kChunk);
  wire::Descriptor worker = Attach(1);
  EXPECT_EQ(Ask(worker, {kDevice - kChunk}).chunks.size(), 1u);  // all but the reserve
  EXPECT_EQ(device.used(), kDevice - kChunk);
}

TEST_F(KeeperPreparedTest, ADriverWithoutMemoryIsNotAskedAgainAndAgain) {
  device.fail_create = device.creates + 1;
  Limit(kChunk);
  usleep(300'000);
  EXPECT_EQ(device.creates, device.fail_create);
  wire::Descriptor worker = Attach(1);
  EXPECT_EQ(Ask(worker, {2 * kMiB}).chunks.size(), 1u);
}

}  // namespace
}  // namespace longwire::keeper
