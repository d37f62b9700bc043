// Connections that break between link and daemon while a program works: it does not notice, unless
// they stay broken.
#include <functional>

#include "tests/transport/cutting_proxy.h"
#include "tests/transport/session_fixture.h"

namespace longwire::daemon {
namespace {

class ResumeTest : public SessionTest {
 protected:
  void SetUp() override {
    uint16_t port = FreePort();
    proxy_ = std::make_unique<transport::CuttingProxy>(port);
    config_.add_listen("127.0.0.1:" + std::to_string(port));
    options_.servers = {{"127.0.0.1", proxy_->port()}};
    config_.set_resume_grace(std::chrono::nanoseconds(grace_).count());
    SessionTest::SetUp();
  }
  void TearDown() override {
    SessionTest::TearDown();
    proxy_.reset();
  }

  // Cuts until `done`, at longer and longer intervals: a slow machine gets on, too.
  size_t CutUntil(const std::function<bool()>& done) {
    size_t cuts = 0;
    for (milliseconds pause(30); !done(); pause += milliseconds(3)) {
      std::this_thread::sleep_for(pause);
      cuts += proxy_->Cut();
    }
    return cuts;
  }

  milliseconds grace_{20'000};
  std::unique_ptr<transport::CuttingProxy> proxy_;
};

class BrokenForGoodTest : public ResumeTest {
 protected:
  BrokenForGoodTest() { grace_ = milliseconds(1000); }
};

TEST_F(ResumeTest, CutsBetweenCallsAreNotNoticed) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(program.Echo("call " + std::to_string(i)));
    EXPECT_GE(proxy_->Cut(), 1u);
  }
  EXPECT_EQ(table_->opened(), 1u);
}

TEST_F(ResumeTest, CutsInTheMiddleOfBulkLoseAndRepeatNothing) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  std::atomic<bool> done{false};
  size_t cuts = 0;
  std::thread cutter([&] { cuts = CutUntil([&] { return done.load(); }); });
  std::string bytes(2 << 20, '\0');
  bool good = true;
  for (int round = 0; round < 20 && good; ++round) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>((i + static_cast<size_t>(round)) * 2654435761u >> 13);
    }
    good = program.Echo(bytes);
  }
  done.store(true);
  cutter.join();
  EXPECT_TRUE(good);
  EXPECT_GT(cuts, 0u);
  EXPECT_EQ(table_->opened(), 1u);
}

TEST_F(ResumeTest, CutsInTheMiddleOfLanesLoseAndRepeatNothing) {
  Program program;
  program.wanted_lanes = 3;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  std::atomic<int> running{3};
  size_t cuts = 0;
  std::thread cutter([&] { cuts = CutUntil([&] { return running.load() == 0; }); });
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < program.lanes.size(); ++lane) {
    threads.emplace_back([&, lane] {
      std::string bytes(2 << 20, '\0');
      bool good = true;
      for (size_t round = 0; round < 10 && good; ++round) {
        for (size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<char>((i + round + 100 * lane) * 2654435761u >> 13);
        }
        good = program.lanes[lane].Echo(bytes);
      }
      EXPECT_TRUE(good) << lane;
      running.fetch_sub(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  cutter.join();
  EXPECT_GT(cuts, 0u);
  EXPECT_TRUE(program.Echo("the log is whole, too"));
  EXPECT_EQ(table_->opened(), 1u);
}

TEST_F(BrokenForGoodTest, ANetworkThatStaysBrokenEndsTheSession) {
  Program program;
  ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
  proxy_->Block(true);
  proxy_->Cut();
  EXPECT_TRUE(Eventually([&] { return program.down_memory->closed(); }));
  EXPECT_EQ(program.down_memory->close_code(), 719u);
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ResumeTest, AProgramThatEndsWhileItsConnectionIsBrokenLeavesNothing) {
  {
    Program program;
    ASSERT_TRUE(program.Open(options_.socket)) << program.reply.sentence;
    ASSERT_TRUE(program.Echo("a call"));
    proxy_->Block(true);
    EXPECT_GE(proxy_->Cut(), 1u);
    std::this_thread::sleep_for(milliseconds(200));
  }
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(table_->List().size(), 1u) << "nobody has said that it ended";
  proxy_->Block(false);
  EXPECT_TRUE(Eventually([&] { return table_->List().empty(); }));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ResumeTest, AnOpenThatIsCutIsTriedAgain) {
  warden_->set_mood(FakeWarden::Mood::kSilent);
  Program program;
  std::thread opener([&] { EXPECT_TRUE(program.Open(options_.socket)) << program.reply.sentence; });
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 1; }));
  warden_->set_mood(FakeWarden::Mood::kEcho);
  EXPECT_GE(proxy_->Cut(), 1u);
  opener.join();
  EXPECT_TRUE(program.Echo("served after all"));
  EXPECT_TRUE(Eventually([&] { return warden_->living() == 1; }));
}

}  // namespace
}  // namespace longwire::daemon
