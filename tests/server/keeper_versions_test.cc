// The keeper with workers and wardens of version 13, by packets that it recorded, and with those
// that say which versions they speak, whatever they say.
#include "server/keeper/greeting.h"
#include "server/protocol/hello.h"
#include "tests/server/keeper_fixture.h"
#include "tests/versions/fixtures.h"

namespace longwire::keeper {
namespace {

class KeeperVersionsTest : public KeeperTest {
 protected:
  void Replay(const wire::Descriptor& socket, const std::string& name,
              std::span<const int> files = {}) {
    ASSERT_TRUE(wire::SendMessage(socket.get(), recorded_.at(name), files)) << name;
  }

  static void SayHello(const wire::Descriptor& socket, wire::VersionRange versions) {
    Say(socket, Borrow{1, {message::kHelloToken, message::TokenOf(versions)}});
  }

  std::map<std::string, std::vector<std::byte>> recorded_ =
      versions::ReadFixtures(FIXTURES "/13.hex");
};

TEST_F(KeeperVersionsTest, AWardenAndAWorkerOfTheVersionBefore) {
  wire::Descriptor worker, keepers;
  ASSERT_TRUE(wire::LocalPair(&worker, &keepers));
  Replay(control, "keeper-limits");
  Replay(control, "attach-worker", std::vector<int>{keepers.get()});
  keepers.Reset();
  Replay(control, "assign-worker");
  Replay(worker, "lease");
  Answer granted = Hear(worker);
  ASSERT_TRUE(granted.answered);
  EXPECT_EQ(granted.chunks.size(), 2u);
  Replay(worker, "get-info");
  Info info;
  auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &info) == wire::WireResult::kOk);
  Replay(worker, "borrow");
  EXPECT_NE(Hear(worker).refuse.code, 0);
  // The warden hears states and nothing that it does not know.
  KeeperState state = State([](const KeeperState& now) { return now.leased == 66 * kMiB; });
  EXPECT_EQ(state.leased, 66 * kMiB);
}

TEST_F(KeeperVersionsTest, AWorkersHelloIsAnsweredOnce) {
  wire::Descriptor worker = Attach(1);
  SayHello(worker, wire::SpokenVersions());
  auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
  ASSERT_TRUE(packet);
  EXPECT_EQ(message::HelloIn(packet->bytes), wire::SpokenVersions());
  SayHello(worker, wire::SpokenVersions());
  EXPECT_NE(Hear(worker).refuse.code, 0) << "no memory has this token";
  EXPECT_TRUE(Ask(worker, {2 * kMiB}).answered);
}

TEST_F(KeeperVersionsTest, WorkersWithoutACommonVersionHarmNobody) {
  wire::Descriptor good = Attach(1);
  uint64_t number = 1;
  for (wire::VersionRange versions :
       {wire::VersionRange{0, 0}, wire::VersionRange{14, 13}, wire::VersionRange{UINT32_MAX, 0},
        wire::VersionRange{UINT32_MAX, UINT32_MAX}, wire::VersionRange{1, 2}}) {
    wire::Descriptor worker = Attach(++number);
    SayHello(worker, versions);
    auto packet = wire::ReceiveMessage(worker.get(), milliseconds(5000));
    ASSERT_TRUE(packet);
    EXPECT_EQ(message::HelloIn(packet->bytes), wire::SpokenVersions());
    bool closed = false;
    wire::ReceiveMessage(worker.get(), milliseconds(5000), &closed);
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(Ask(good, {2 * kMiB}).chunks.size(), 1u);
}

class GreetWardenTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(wire::LocalPair(&warden_, &keeper_)); }

  wire::Descriptor warden_, keeper_;
  KeeperState state_;
};

TEST_F(GreetWardenTest, AWardenOfTheVersionBeforeHearsNothing) {
  EXPECT_EQ(GreetWarden(keeper_.get(), &state_), wire::kLastWithoutRange);
  // Nor does what it said first get lost.
  ASSERT_TRUE(wire::SendMessage(warden_.get(), message::Pack(KeeperLimits())));
  EXPECT_EQ(GreetWarden(keeper_.get(), &state_), wire::kLastWithoutRange);
  EXPECT_TRUE(wire::ReceiveMessage(keeper_.get(), milliseconds(0)));
  EXPECT_FALSE(wire::ReceiveMessage(warden_.get(), milliseconds(0)));
}

TEST_F(GreetWardenTest, AHelloIsAnswered) {
  ASSERT_TRUE(wire::SendMessage(warden_.get(), message::Pack(message::Hello{13, UINT32_MAX})));
  EXPECT_EQ(GreetWarden(keeper_.get(), &state_), wire::SpokenVersions().newest);
  auto packet = wire::ReceiveMessage(warden_.get(), milliseconds(0));
  ASSERT_TRUE(packet);
  EXPECT_EQ(message::HelloIn(packet->bytes), wire::SpokenVersions());
  EXPECT_FALSE(wire::ReceiveMessage(keeper_.get(), milliseconds(0)));
}

TEST_F(GreetWardenTest, WithoutACommonVersionBothHearWhy) {
  ASSERT_TRUE(wire::SendMessage(warden_.get(), message::Pack(message::Hello{15, 16})));
  EXPECT_EQ(GreetWarden(keeper_.get(), &state_), 0u);
  EXPECT_EQ(state_.code, 803);
  EXPECT_EQ(state_.sentence,
            "longwire-warden speaks protocol 15 to 16, longwire-keeper protocol 13 to 14: upgrade "
            "longwire-keeper");
  EXPECT_TRUE(wire::ReceiveMessage(warden_.get(), milliseconds(0)));
}

}  // namespace
}  // namespace longwire::keeper
