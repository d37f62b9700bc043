#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client-shim/mirror/mirrors.h"
#include "client-shim/testing/mirrors_fixture.h"

namespace longwire::shim {
namespace {

using ::testing::IsEmpty;
using testing::kDevice;
using testing::kPage;
using testing::MirrorsTest;
using testing::Pushed;
using testing::Record;
using testing::RunsOf;

// Work behind work waits on the device for a comparison that comes a moment later.
class LateComparisonsTest : public MirrorsTest {
 protected:
  void SetUp() override {
    MirrorsTest::SetUp();
    mirror_ = Add({address(), kDevice, kPage});
    Settle();
    QueueWork();  // compares at once, as nothing ran before it
  }
  // Queues work that waits for the next comparison, which it returns.
  calls::lwStreamWaitEvent Promised() {
    {
      DeviceWork work(stream_, Sends::kPerhapsLater);
      Work(stream_);
    }
    SendWhatWorkAwaits();  // unless the comparing thread was quicker
    records_ = fake_.Take();
    EXPECT_FALSE(records_.empty());
    EXPECT_EQ(records_.front().header.stream, stream_->id);
    return records_.front().As<calls::lwStreamWaitEvent>();
  }
  template <class Call>
  std::vector<Call> Sent() const {
    std::vector<Call> calls;
    for (const Record& record : records_) {
      if (record.call == Call::kId) calls.push_back(record.As<Call>());
    }
    return calls;
  }

  uint64_t mirror_ = 0;
  std::vector<Record> records_;
};

TEST_F(LateComparisonsTest, TheWorkAwaitsWhatIsPushedThen) {
  memory_[7] = 'l';
  const auto awaited = Promised();
  const auto recorded = Sent<calls::lwEventRecord>();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].event, awaited.event);
  EXPECT_EQ(recorded[0].version, awaited.version);
  std::vector<Pushed> runs = RunsOf(records_);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].mirror, mirror_);
  EXPECT_THAT(Sent<calls::lwEventPass>(), IsEmpty());
}

TEST_F(LateComparisonsTest, WithoutChangesTheWorkIsLetGo) {
  const auto awaited = Promised();
  const auto passed = Sent<calls::lwEventPass>();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].event, awaited.event);
  EXPECT_EQ(passed[0].version, awaited.version);
  EXPECT_THAT(RunsOf(records_), IsEmpty());
}

TEST_F(LateComparisonsTest, AfterAWaitTheComparisonComesFirst) {
  Settle();
  memory_[7] = 'f';
  {
    DeviceWork work(stream_, Sends::kPerhapsLater);
    Work(stream_);
  }
  std::vector<std::string> names = fake_.TakeNames();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "lwMirrorPush");
  EXPECT_EQ(names.back(), "lwMemset");
}

}  // namespace
}  // namespace longwire::shim
