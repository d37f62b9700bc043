#include "server/warden/worker_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr pid_t kWorker = 77;

class WorkerLogTest : public testing::Test {
 protected:
  void SetUp() override {
    end_ = log_.Open();
    ASSERT_TRUE(end_.valid());
  }
  void Say(const std::string& text) {
    ASSERT_EQ(write(end_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // What is written to standard error meanwhile.
  template <class Work>
  std::string Written(Work work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  }
  std::string Read() {
    return Written([&] { log_.Read(kWorker, now_); });
  }

  WorkerLog log_;
  wire::Descriptor end_;
  WorkerLog::Clock::time_point now_ = WorkerLog::Clock::now();
};

TEST_F(WorkerLogTest, LinesAreTheWorkers) {
  Say("longwire-worker[77]: as it says\nlongwire-worker[78]: of another\nlongwired: no\nhalf a");
  EXPECT_EQ(Read(),
            "longwire-worker[77]: as it says\n"
            "longwire-worker[77]: longwire-worker[78]: of another\n"
            "longwire-worker[77]: longwired: no\n");
  Say(" line\n");
  EXPECT_EQ(Read(), "longwire-worker[77]: half a line\n");
}

TEST_F(WorkerLogTest, NothingThatATerminalObeys) {
  Say("a\x1b[31m\u202e\u009b\x9b\n");
  EXPECT_EQ(Read(), "longwire-worker[77]: a?[31m???\n");
}

TEST_F(WorkerLogTest, AFloodIsCountedAndHeldBack) {
  size_t lines = 0, written = 0;
  const std::string block = "x\ny\n";
  for (int pass = 0; pass < 100; ++pass) {
    while (write(end_.get(), block.data(), block.size()) > 0) lines += 2;
    if (log_.Listens(now_)) {
      std::string text = Read();
      written += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    }
    now_ += milliseconds(10);
  }
  EXPECT_LE(written, 300u + 31u);
  EXPECT_LT(lines, 200'000u);  // the pipe was full most of the time
  EXPECT_TRUE(log_.IsPaused(now_) || log_.Listens(now_));
  end_.Reset();
  std::string rest = Written([&] { log_.Finish(kWorker, 5, now_); });
  EXPECT_NE(rest.find(" more lines of session 5 (worker 77) were left out"), std::string::npos)
      << rest;
}

TEST_F(WorkerLogTest, ALineWithoutEndIsCut) {
  for (int i = 0; i < 20; ++i) {
    Say(std::string(1000, 'z'));
    EXPECT_LE(Read().size(), 1100u);
  }
}

TEST_F(WorkerLogTest, TheEndOfAWorkerIsNoEvent) {
  end_.Reset();
  EXPECT_EQ(Read(), "");
  EXPECT_FALSE(log_.Listens(now_));
  EXPECT_EQ(Written([&] { log_.Finish(kWorker, 5, now_); }), "");
}

}  // namespace
}  // namespace longwire::warden
