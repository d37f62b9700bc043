// What longwire top --pool shows of a pool, and which keys it takes.
#include <gmock/gmock.h>

#include <clocale>

#include "cli/top/pool_lines.h"
#include "cli/top/pool_view.h"

namespace longwire::cli::top {
namespace {

using testing::HasSubstr;
using testing::Not;

class PoolViewTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
    pool_.set_host("gpu1");
    pool_.set_joined(true);
    pool_.set_placer("gpu2");
    for (const char* name : {"gpu1", "gpu2"}) AddHost(name);
  }

  transport::PoolHost& AddHost(const std::string& name) {
    transport::PoolHost& host = *pool_.add_hosts();
    host.set_name(name);
    host.set_joined(true);
    host.set_version("0.9");
    host.set_sessions(3);
    host.set_sessions_limit(16);
    for (int i = 0; i < 2; ++i) {
      transport::PoolDevice& device = *host.add_devices();
      device.set_ordinal(i);
      device.set_name("H200");
      device.set_total(uint64_t{8} << 30);
      device.set_promised(uint64_t{1} << 30);
      device.set_busy(i);
    }
    return host;
  }
  void AddWaiter(uint32_t place, const std::string& program) {
    transport::PoolWaiter& waiter = *pool_.add_waiting();
    waiter.set_place(place);
    waiter.set_program("/opt/" + program);
    waiter.set_tenant("research");
    waiter.set_devices(1);
    waiter.set_waited(75);
    waiter.set_reason("gpu1: 512 MiB are missing");
  }
  std::string PageText(int width, int height) {
    std::string text;
    for (const Line& line : view_.Page(width, height)) text += line.text + "\n";
    return text;
  }

  transport::PoolFigures pool_;
  PoolView view_;
};

TEST_F(PoolViewTest, AHostHasTheSumsOfItsDevices) {
  EXPECT_THAT(PoolText(pool_),
              HasSubstr("pool of 2 hosts as gpu1 sees it, placed by gpu2, 6 sessions, 0 waiting"));
  const std::vector<std::string> lines = HostLines(pool_, 0);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[1], HasSubstr("50% 2.0 GiB of 16.0 GiB     3/16 in service"));
  EXPECT_THAT(lines[3], HasSubstr("100%  1.0 GiB of 8.0 GiB"));
  EXPECT_THAT(PoolText(pool_), HasSubstr("\nnobody waits\n"));
}

TEST_F(PoolViewTest, TheQueueIsInOrderAndWhoHasNoPlaceYetIsLast) {
  AddWaiter(0, "new");
  AddWaiter(2, "second");
  AddWaiter(1, "first");
  const std::vector<std::string> lines = QueueLines(pool_, 0);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[1], HasSubstr("75.0 s research"));
  EXPECT_THAT(lines[1], HasSubstr("first"));
  EXPECT_THAT(lines[1], HasSubstr("gpu1: 512 MiB are missing"));
  EXPECT_THAT(lines[2], HasSubstr("second"));
  EXPECT_THAT(lines[3], HasSubstr("new"));
}

TEST_F(PoolViewTest, AStateSaysWhyAHostTakesNothing) {
  transport::PoolHost& host = *pool_.mutable_hosts(0);
  EXPECT_EQ(HostState(host), "in service");
  host.set_cordoned(true);
  EXPECT_EQ(HostState(host), "takes no new sessions");
  host.mutable_withdrawn()->set_by("operator");
  EXPECT_EQ(HostState(host), "cordoned");
  host.mutable_withdrawn()->set_drain(true);
  host.mutable_withdrawn()->set_seconds(600);
  EXPECT_EQ(HostState(host), "drained") << "of which it does not know";
  host.mutable_withdrawn()->set_heard(true);
  host.mutable_withdrawn()->set_left(120);
  EXPECT_EQ(HostState(host), "drained, ends what runs in 120 s");
  EXPECT_THAT(PoolJson(pool_), HasSubstr("\"drain_seconds_left\":120"));
  host.set_sessions(0);
  EXPECT_EQ(HostState(host), "drained, empty");
  host.set_joined(false);
  host.clear_withdrawn();
  EXPECT_EQ(HostState(host), "not in the pool now");
  EXPECT_THAT(PoolJson(pool_), HasSubstr("\"takes_sessions\":false"));
}

TEST_F(PoolViewTest, JsonHasNullForWhatIsNotKnown) {
  AddWaiter(0, "new");
  pool_.clear_placer();
  EXPECT_THAT(PoolJson(pool_), HasSubstr("\"placer\":null"));
  EXPECT_THAT(PoolJson(pool_), HasSubstr("\"place\":null,\"waited_seconds\":75"));
  EXPECT_EQ(PoolAlarmLine(pool_), "no host places sessions just now");
  pool_.set_problem("etcd at x does not answer\x1b[2J");
  EXPECT_THAT(PoolText(pool_), HasSubstr("problem: etcd at x does not answer?[2J\n"));
}

TEST_F(PoolViewTest, APageIsAsLargeAsAskedAndScrolls) {
  for (int i = 3; i < 40; ++i) AddHost("gpu" + std::to_string(i));
  AddWaiter(1, "first");
  view_.SetPool(pool_);
  const std::vector<Line> page = view_.Page(60, 12);
  ASSERT_EQ(page.size(), 12u);
  for (const Line& line : page) EXPECT_EQ(line.text.size(), 60u);
  EXPECT_THAT(PageText(120, 12), HasSubstr("\ngpu1 "));
  EXPECT_THAT(PageText(120, 12), Not(HasSubstr("first")));
  view_.Press(Key::kPageDown);
  EXPECT_THAT(PageText(120, 12), Not(HasSubstr("\ngpu1 ")));
  view_.Press(Key::kEnd);
  EXPECT_THAT(PageText(120, 12), HasSubstr("first"));
  view_.Press(Key::kHome);
  view_.Press(Key::kUp);
  EXPECT_THAT(PageText(120, 12), HasSubstr("HOST"));
  for (int height : {0, 1, 2, 3}) (void)view_.Page(10, height);
  view_.SetProblem("gone");
  EXPECT_THAT(PageText(120, 12), HasSubstr("these figures are old; trying again: gone"));
  EXPECT_FALSE(view_.quit());
  view_.Press(Key::kText, "q");
  EXPECT_TRUE(view_.quit());
}

}  // namespace
}  // namespace longwire::cli::top
