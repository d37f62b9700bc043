// Whom the keeper asks for memory that sessions keep free: in which order, how long it waits, whom
// it does not ask.
#include "server/keeper/drain.h"

#include <gtest/gtest.h>

namespace longwire::keeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class DrainTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t worker : workers) drain.Add(worker, now);
  }

  // Who is asked now; 0: nobody, but somebody is waited for; -1: there is nobody left.
  int64_t Next(Drain::Round& round, uint64_t bytes = 64 * kMiB) {
    std::vector<Drain::Ask> asks;
    bool waits = drain.Advance(round, workers, bytes, now, &asks);
    if (asks.empty()) return waits ? 0 : -1;
    EXPECT_EQ(asks.size(), 1u);
    EXPECT_EQ(asks[0].packet.bytes, bytes);
    last[asks[0].worker] = asks[0].packet.request;
    return static_cast<int64_t>(asks[0].worker);
  }

  void Answer(uint64_t worker, uint64_t bytes, uint64_t idle = 0) {
    drain.Answered(worker, {last.at(worker), bytes, idle}, now);
  }

  Drain drain;
  Drain::Time now{seconds(1000)};
  std::vector<uint64_t> workers = {1, 2, 3};
  std::map<uint64_t, uint64_t> last;  // request by worker
};

TEST_F(DrainTest, TheLeastRecentlyActiveIsAskedFirstAndEachOnce) {
  drain.Active(1, now + milliseconds(3));
  drain.Active(2, now + milliseconds(1));
  drain.Active(3, now + milliseconds(2));
  now += milliseconds(10);
  Drain::Round round;
  for (int64_t worker : {2, 3, 1}) {
    EXPECT_EQ(Next(round), worker);
    EXPECT_EQ(Next(round), 0) << "it is waited for";
    Answer(static_cast<uint64_t>(worker), 0);
  }
  EXPECT_EQ(Next(round), -1);
  Drain::Round another;
  EXPECT_GT(Next(another), 0) << "the next lease asks anew";
}

TEST_F(DrainTest, AfterAWhileTheNextIsAskedToo) {
  Drain::Round round;
  EXPECT_GT(Next(round), 0);
  now += Drain::kNextAfter - milliseconds(1);
  EXPECT_EQ(Next(round), 0);
  now += milliseconds(1);
  EXPECT_GT(Next(round), 0);
}

TEST_F(DrainTest, OneThatIsSilentIsWaitedForOnceAndNotAskedAgain) {
  workers = {1};
  Drain::Round round;
  EXPECT_EQ(Next(round), 1);
  now += Drain::kPatience - milliseconds(1);
  EXPECT_EQ(Next(round), 0);
  now += milliseconds(1);
  EXPECT_EQ(Next(round), -1);
  EXPECT_EQ(drain.counts().silent, 1u);
  for (int i = 0; i < 3; ++i) {
    Drain::Round later;
    EXPECT_EQ(Next(later), -1) << "nobody waits for it again";
    now += seconds(1);
  }
  EXPECT_EQ(drain.counts().asked, 1u);
}

TEST_F(DrainTest, SilenceEndsWithAnyWordOfIt) {
  workers = {1};
  for (bool answers : {true, false}) {
    Drain::Round round;
    EXPECT_EQ(Next(round), 1);
    now += Drain::kPatience;
    EXPECT_EQ(Next(round), -1);
    if (answers) {
      Answer(1, 0);
    } else {
      drain.Active(1, now);
    }
  }
  Drain::Round round;
  EXPECT_EQ(Next(round), 1);
  EXPECT_EQ(Next(round), 0) << "and it has its time again";
}

TEST_F(DrainTest, TwoLeasesDoNotAskTheSameSessionAtOnce) {
  workers = {1};
  Drain::Round first, second;
  EXPECT_EQ(Next(first), 1);
  EXPECT_EQ(Next(second), 0);
  Answer(1, 32 * kMiB);
  EXPECT_EQ(Next(second), 1);
  Answer(1, 0);
  EXPECT_EQ(Next(first), -1);
  EXPECT_EQ(drain.counts().drained, 32 * kMiB);
}

TEST_F(DrainTest, AWorkerThatIsGoneIsNotWaitedFor) {
  workers = {1};
  Drain::Round round;
  EXPECT_EQ(Next(round), 1);
  drain.Remove(1);
  EXPECT_EQ(Next(round), -1);
  Answer(1, kMiB);
  EXPECT_EQ(drain.IdleOf(1), 0u);
}

TEST_F(DrainTest, FiguresAreAskedOfAllAtOnceAndKeptForAMoment) {
  std::vector<Drain::Ask> asks;
  EXPECT_TRUE(drain.Figures(workers, now, now, &asks));
  ASSERT_EQ(asks.size(), 3u);
  for (const Drain::Ask& ask : asks) {
    EXPECT_EQ(ask.packet.bytes, 0u);
    last[ask.worker] = ask.packet.request;
  }
  now += milliseconds(5);
  for (uint64_t worker : workers) Answer(worker, 0, worker * kMiB);
  asks.clear();
  EXPECT_FALSE(drain.Figures(workers, now, now, &asks));
  EXPECT_EQ(drain.IdleOf(3), 3 * kMiB);
  EXPECT_EQ(drain.counts().drained, 0u);
  now += Drain::kFigureAge;
  EXPECT_TRUE(drain.Figures(workers, now, now, &asks));
  EXPECT_EQ(asks.size(), 3u);
  now += Drain::kPatience;
  asks.clear();
  EXPECT_FALSE(drain.Figures(workers, now, now, &asks)) << "silent ones have no figure";
  EXPECT_EQ(drain.IdleOf(3), 0u);
}

TEST_F(DrainTest, UnusedMemoryIsAskedForLessAndLessOften) {
  workers = {1};
  std::vector<int> waited;
  int since = 0;
  Drain::Time expected{};
  for (int second = 1; second <= 400; ++second) {
    now += seconds(1);
    ++since;
    std::vector<Drain::Ask> asks;
    auto next = drain.AskUnused(workers, 256 * kMiB, seconds(10), now, &asks);
    EXPECT_GT(next, now);
    if (asks.empty()) {
      expected = next;
      continue;
    }
    EXPECT_EQ(now, expected) << "not when it was said before";
    EXPECT_EQ(next, now + Drain::kPatience) << "until then the answer is waited for";
    EXPECT_TRUE(asks[0].packet.unused);
    EXPECT_EQ(asks[0].packet.keep, 256 * kMiB);
    drain.Answered(1, {asks[0].packet.request, 0, 0}, now);
    waited.push_back(since);
    since = 0;
  }
  EXPECT_EQ(waited, (std::vector<int>{10, 10, 20, 40, 80, 160}));
  drain.Active(1, now);
  std::vector<Drain::Ask> asks;
  now += seconds(10);
  drain.AskUnused(workers, 0, seconds(10), now, &asks);
  EXPECT_EQ(asks.size(), 1u);
  workers.clear();
  EXPECT_EQ(drain.AskUnused(workers, 0, seconds(10), now, &asks), Drain::Time::max());
}

TEST_F(DrainTest, OtherLimitsAreAskedForSoon) {
  workers = {1};
  std::vector<Drain::Ask> asks;
  for (int minutes = 0; minutes < 10; ++minutes) {
    now += std::chrono::minutes(6);
    drain.AskUnused(workers, 256 * kMiB, seconds(10), now, &asks);
    drain.Answered(1, {asks.back().packet.request, 0, 0}, now);
  }
  asks.clear();
  now += seconds(10);
  drain.AskUnused(workers, 0, seconds(10), now, &asks);
  EXPECT_TRUE(asks.empty()) << "it was asked often";
  drain.ForgetUnusedAsks();
  drain.AskUnused(workers, 0, seconds(10), now, &asks);
  EXPECT_EQ(asks.size(), 1u);
}

}  // namespace
}  // namespace longwire::keeper
