// The thread that measures and writes: a test plays keepers and warden.
#include "server/daemon/usage/usage_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace longwire::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

class UsageLogTest : public testing::Test {
 protected:
  UsageLogTest() {
    char name[] = "/tmp/longwire-usage-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~UsageLogTest() override { std::filesystem::remove_all(folder_); }

  UsageLog::Source Source() {
    UsageLog::Source source;
    source.events = [this](int32_t device, uint64_t after) {
      std::vector<keeper::MemoryEvent> later;
      base::MutexLock lock(mutex_);
      for (const auto& event : events_) {
        if (device == 0 && event.number > after) later.push_back(event);
      }
      return later;
    };
    source.leased = [] { return std::optional<std::map<int32_t, MemoryMeter::Leased>>(); };
    return source;
  }
  void Happens(keeper::MemoryEventKind kind, uint64_t session, uint64_t bytes, uint64_t time) {
    base::MutexLock lock(mutex_);
    events_.push_back({events_.size() + 1, time, static_cast<uint32_t>(kind), session, bytes});
  }
  static UsageRecord Record(uint64_t session, uint64_t ended) {
    UsageRecord record;
    record.session = session;
    record.ended = ended;
    return record;
  }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/usage").rdbuf();
    return text.str();
  }

  std::string folder_;
  base::Mutex mutex_;
  std::vector<keeper::MemoryEvent> events_;
};

TEST_F(UsageLogTest, ARecordHasTheMemoryOfItsSession) {
  UsageLog log(folder_ + "/usage", 1 << 20, Source());
  log.Start();
  const uint64_t opened = UtcNow() - 7'200'000'000;
  log.Opened(5, {0}, opened);
  Happens(keeper::MemoryEventKind::kLease, 5, 1000, opened);
  log.Ended(Record(5, opened + 3'600'000'000));
  log.Forget(5);  // as the table does behind it
  log.Stop();
  EXPECT_THAT(Text(), HasSubstr("\"session\":5,"));
  EXPECT_THAT(Text(), HasSubstr("\"memory_byte_hours\":1000.000000,\"memory_estimated\":false"));
}

TEST_F(UsageLogTest, EachSessionThatEndsHasOneRecord) {
  UsageLog log(folder_ + "/usage", 1 << 20, Source());
  log.Start();
  for (uint64_t session = 1; session <= 100; ++session) {
    log.Opened(session, {0}, UtcNow());
    if (session % 2 == 0) log.Ended(Record(session, UtcNow()));
  }
  log.Forget(1);
  log.Stop();
  const std::string text = Text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 50);
  EXPECT_THAT(text, Not(HasSubstr("\"session\":1,")));
}

TEST_F(UsageLogTest, WhoseMemoryWasNeverMeasuredHasNone) {
  UsageLog log(folder_ + "/usage", 1 << 20, Source());
  log.Start();
  log.Ended(Record(6, UtcNow()));
  log.Stop();
  EXPECT_THAT(Text(), HasSubstr("\"memory_byte_hours\":null"));
}

TEST_F(UsageLogTest, AFileThatTakesNothingDelaysNobody) {
  UsageLog log("/dev/full", 1 << 20, Source());
  log.Start();
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t session = 1; session <= 20000; ++session) log.Ended(Record(session, UtcNow()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  log.Stop();
}

}  // namespace
}  // namespace longwire::daemon
