// Which of several servers is taken, and when each is tried.
#include "link/server_race.h"

#include <gtest/gtest.h>

#include <array>

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a server does when it is tried.
enum class Kind { kServes, kFails, kSilent, kTakes, kSlow };

struct Try {
  std::atomic<int> times{0};
  std::atomic<bool> ended{false};
};

class Race {
 public:
  explicit Race(std::vector<Kind> kinds, milliseconds answer = {}) : kinds_(std::move(kinds)) {
    std::vector<transport::Address> servers;
    for (size_t i = 0; i < kinds_.size(); ++i) servers.push_back({"s" + std::to_string(i), 1});
    race_ = std::make_unique<ServerRace>(
        servers,
        [this](size_t place, Contender& contender, std::string* sentence) {
          ++tries[place].times;
          bool serves = Attempt(kinds_[place], contender, sentence);
          tries[place].ended = true;
          return serves;
        },
        answer);
  }

  std::optional<size_t> Run(milliseconds patience) {
    auto begun = Clock::now();
    auto first = race_->Run(begun + patience, &sentence);
    took = Clock::now() - begun;
    return first;
  }
  ServerRace& race() { return *race_; }

  std::array<Try, 8> tries;
  std::string sentence;
  Clock::duration took{};

 private:
  static bool Attempt(Kind kind, Contender& contender, std::string* sentence) {
    if (kind == Kind::kFails) *sentence = contender.address().host + " fails";
    if (kind == Kind::kServes || kind == Kind::kFails) return kind == Kind::kServes;
    if (kind == Kind::kTakes || kind == Kind::kSlow) contender.Connected();
    auto end = Clock::now() + (kind == Kind::kSlow ? milliseconds(600) : milliseconds(20'000));
    while (!contender.given_up() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return kind == Kind::kSlow && !contender.given_up();
  }

  const std::vector<Kind> kinds_;
  std::unique_ptr<ServerRace> race_;  // ends before what its threads use
};

constexpr milliseconds kLong{10'000};

TEST(ServerRace, TheFirstIsTakenAndNoOtherTried) {
  Race race({Kind::kServes, Kind::kServes});
  EXPECT_EQ(size_t{0}, race.Run(kLong));
  EXPECT_EQ(0, race.tries[1].times);
}

TEST(ServerRace, BehindOneThatFailsTheNextIsTriedAtOnce) {
  Race race({Kind::kFails, Kind::kFails, Kind::kServes});
  EXPECT_EQ(size_t{2}, race.Run(kLong));
  EXPECT_LT(race.took, milliseconds(250));
}

TEST(ServerRace, BesideOneThatIsSilentTheNextIsTriedSoon) {
  Race race({Kind::kSilent, Kind::kServes});
  EXPECT_EQ(size_t{1}, race.Run(kLong));
  EXPECT_GE(race.took, milliseconds(290));
  EXPECT_LT(race.took, milliseconds(1400));
}

TEST(ServerRace, WhoTakesTheConnectionHasMoreTime) {
  Race race({Kind::kSlow, Kind::kServes});
  EXPECT_EQ(size_t{0}, race.Run(kLong));
  EXPECT_EQ(0, race.tries[1].times);
  Race never({Kind::kTakes, Kind::kServes});
  EXPECT_EQ(size_t{1}, never.Run(kLong));
  EXPECT_GE(never.took, milliseconds(1490));
}

TEST(ServerRace, WhoHasTheConnectionIsWaitedForLongerThanWhoHasNone) {
  Race slow({Kind::kSlow}, kLong);
  EXPECT_EQ(size_t{0}, slow.Run(milliseconds(200)));
  Race silent({Kind::kSilent}, kLong);
  EXPECT_EQ(std::nullopt, silent.Run(milliseconds(200)));
  EXPECT_LT(silent.took, milliseconds(5'000));
}

TEST(ServerRace, TheOthersGiveUp) {
  Race race({Kind::kSilent, Kind::kTakes, Kind::kServes});
  EXPECT_EQ(size_t{2}, race.Run(kLong));
  auto until = Clock::now() + milliseconds(5000);
  while ((!race.tries[0].ended || !race.tries[1].ended) && Clock::now() < until) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(race.tries[0].ended && race.tries[1].ended);
}

TEST(ServerRace, WhenNoneServesEachSaysWhy) {
  Race race({Kind::kSilent, Kind::kFails, Kind::kTakes});
  EXPECT_EQ(std::nullopt, race.Run(milliseconds(1200)));
  EXPECT_NE(std::string::npos, race.sentence.find("no answer from s0:1 in 1.2 s: a firewall"));
  EXPECT_NE(std::string::npos, race.sentence.find("s1 fails"));
  EXPECT_NE(std::string::npos, race.sentence.find("s2:1 has taken the connection, but has not"));
}

TEST(ServerRace, ALongListIsTriedInTime) {
  Race race(std::vector<Kind>(8, Kind::kSilent));
  EXPECT_EQ(std::nullopt, race.Run(milliseconds(2600)));
  for (const Try& tried : race.tries) EXPECT_EQ(1, tried.times);
}

TEST(ServerRace, MayBeGivenUpByOthers) {
  Race race({Kind::kSilent, Kind::kSilent});
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    race.race().GiveUp();
  });
  EXPECT_EQ(std::nullopt, race.Run(kLong));
  EXPECT_LT(race.took, milliseconds(5000));
  other.join();
}

}  // namespace
}  // namespace longwire::link
