// The warden with daemons of version 13, by packets that one recorded, and with those that say
// which versions they speak, whatever they say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "server/protocol/hello.h"
#include "server/warden/warden.h"
#include "tests/versions/fixtures.h"

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;

class WardenVersionsTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.socket = testing::TempDir() + "/versions-" + std::to_string(getpid()) + ".sock";
    options_.driver = "fake";
    options_.devices = {0};
    options_.warm_workers = 0;
    options_.worker_program = STAND_IN_WORKER;
    options_.keeper_program = STAND_IN_KEEPER;
    std::atomic<bool> ready = false;
    // The children end with the thread that started them.
    thread_ = std::thread([&] {
      Warden warden(options_);
      std::string sentence;
      EXPECT_EQ(warden.OpenDevices(&sentence), 0) << sentence;
      EXPECT_TRUE(warden.Listen(&sentence)) << sentence;
      ready = true;
      while (!stop_ && warden.RunOnce(milliseconds(10))) {
      }
    });
    while (!ready) usleep(1000);
  }

  void TearDown() override {
    stop_ = true;
    thread_.join();
    unlink(options_.socket.c_str());
  }

  wire::Descriptor Connect() { return wire::ConnectLocal(options_.socket); }

  static std::optional<wire::Message> Hear(const wire::Descriptor& daemon, bool* closed = nullptr) {
    return wire::ReceiveMessage(daemon.get(), milliseconds(5000), closed);
  }

  template <class M>
  static testing::AssertionResult Hears(const wire::Descriptor& daemon) {
    auto packet = Hear(daemon);
    M message;
    if (packet && message::Unpack(packet->bytes, &message) == wire::WireResult::kOk) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << (packet ? "another packet" : "nothing");
  }

  void Replay(const wire::Descriptor& daemon, const std::string& name) {
    ASSERT_TRUE(wire::SendMessage(daemon.get(), recorded_.at(name))) << name;
  }

  Options options_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  std::map<std::string, std::vector<std::byte>> recorded_ =
      versions::ReadFixtures(FIXTURES "/13.hex");
};

TEST_F(WardenVersionsTest, ADaemonOfTheVersionBeforeIsServed) {
  wire::Descriptor daemon = Connect();
  Replay(daemon, "list-workers");
  EXPECT_TRUE(Hears<ListEnd>(daemon));
  Replay(daemon, "get-stats");
  EXPECT_TRUE(Hears<Stats>(daemon));
  Replay(daemon, "set-quota");
  Replay(daemon, "start-worker");
  EXPECT_TRUE(Hears<WorkerStarted>(daemon));
}

TEST_F(WardenVersionsTest, AHelloIsAnswered) {
  wire::Descriptor daemon = Connect();
  ASSERT_TRUE(wire::SendMessage(daemon.get(), message::Pack(message::Hello{})));
  auto packet = Hear(daemon);
  ASSERT_TRUE(packet);
  EXPECT_EQ(message::HelloIn(packet->bytes), wire::SpokenVersions());
  Replay(daemon, "get-stats");
  EXPECT_TRUE(Hears<Stats>(daemon));
}

TEST_F(WardenVersionsTest, DaemonsWithoutACommonVersionHarmNobody) {
  wire::Descriptor good = Connect();
  Replay(good, "list-workers");
  EXPECT_TRUE(Hears<ListEnd>(good));
  for (message::Hello hello :
       {message::Hello{0, 0}, message::Hello{14, 13}, message::Hello{UINT32_MAX, 0},
        message::Hello{UINT32_MAX, UINT32_MAX}, message::Hello{1, 2}}) {
    wire::Descriptor daemon = Connect();
    ASSERT_TRUE(wire::SendMessage(daemon.get(), message::Pack(hello)));
    EXPECT_TRUE(Hears<message::Hello>(daemon)) << "so that it can say why, too";
    bool closed = false;
    Hear(daemon, &closed);
    EXPECT_TRUE(closed);
  }
  Replay(good, "get-stats");
  EXPECT_TRUE(Hears<Stats>(good));
}

}  // namespace
}  // namespace longwire::warden
