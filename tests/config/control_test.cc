// Asking a running daemon to reload, and hearing what came of it.
#include "server/daemon/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

namespace longwire::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/longwire-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/control";
    std::string sentence;
    ASSERT_TRUE(control_.Start(path_, &sentence)) << sentence;
  }
  void TearDown() override {
    control_.Stop();
    EXPECT_EQ(rmdir(folder_.c_str()), 0) << "the socket is still there";
  }

  std::string folder_, path_;
  Reloader::Outcome outcome_;
  std::vector<std::string> asked_;
  Control control_{[this](const std::string& who) {
    asked_.push_back(who);
    return outcome_;
  }};
};

TEST_F(ControlTest, SaysWhatChanged) {
  outcome_ = {true, {"max_sessions: 5, was 4", "log_level: debug, was info"}};
  std::string text;
  EXPECT_TRUE(AskForReload(path_, &text));
  EXPECT_EQ(text, "max_sessions: 5, was 4\nlog_level: debug, was info\n");
  EXPECT_THAT(asked_, ElementsAre("longwired --reload"));
}

TEST_F(ControlTest, SaysWhyItWasRefused) {
  outcome_ = {false, {"a.yaml:3:1: unknown key 'tenant'"}};
  std::string text;
  EXPECT_FALSE(AskForReload(path_, &text));
  EXPECT_EQ(text, "a.yaml:3:1: unknown key 'tenant'\n");
}

TEST_F(ControlTest, MoreReasonsThanAPacketHolds) {
  outcome_ = {false, std::vector<std::string>(5000, std::string(100, 'x'))};
  std::string text;
  EXPECT_FALSE(AskForReload(path_, &text));
  EXPECT_GT(text.size(), 100'000u);
}

TEST_F(ControlTest, OtherPacketsAreNotAnswered) {
  for (std::string_view request : {"", "r", "reload ", "shutdown"}) {
    wire::Descriptor socket = wire::ConnectLocal(path_);
    ASSERT_TRUE(wire::SendMessage(socket.get(), std::as_bytes(std::span(request))));
    bool closed = false;
    EXPECT_FALSE(wire::ReceiveMessage(socket.get(), std::chrono::seconds(10), &closed));
    EXPECT_TRUE(closed);
  }
  EXPECT_TRUE(asked_.empty());
}

TEST_F(ControlTest, ASecondDaemonDoesNotTakeItOver) {
  Control other([](const std::string&) { return Reloader::Outcome{}; });
  std::string sentence;
  EXPECT_FALSE(other.Start(path_, &sentence));
  EXPECT_THAT(sentence, HasSubstr(path_));
}

TEST_F(ControlTest, NobodyIsThere) {
  std::string text;
  EXPECT_FALSE(AskForReload(folder_ + "/none", &text));
  EXPECT_THAT(text, HasSubstr("no longwired answers at " + folder_));
}

}  // namespace
}  // namespace longwire::daemon
