#include "server/admission/openings.h"

#include <gtest/gtest.h>

#include <set>

#include "server/config/config.h"

namespace longwire::admission {
namespace {

constexpr Openings::Rate kRate{10, 5};
const Openings::Clock::time_point kStart{std::chrono::seconds(1000)};

TEST(OpeningsTest, OneIdentityOpensNoFasterThanItsRate) {
  Openings openings;
  Openings::Clock::duration wait{};
  int at_once = 0, later = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!openings.Reserve("flood", kRate, kStart, &wait)) continue;
    wait.count() == 0 ? ++at_once : ++later;
  }
  EXPECT_EQ(at_once, 5);
  EXPECT_EQ(later, 30);  // in three seconds
  EXPECT_EQ(openings.refused(), 965u);
  EXPECT_TRUE(openings.Reserve("neighbour", kRate, kStart, &wait));
  EXPECT_EQ(wait.count(), 0);
}

// Without a key in the configuration: short programs of one user, started again and again.
TEST(OpeningsTest, LoopsOfShortProgramsWaitInTurn) {
  config::Config config;
  config::FillDefaults("", &config);
  const Openings::Rate rate{static_cast<double>(config::OpeningsPerSecond(config)),
                            static_cast<double>(config.admission().openings_at_once())};
  constexpr int kLoops = 32, kPrograms = 1000;
  constexpr std::chrono::milliseconds kLasts{50};
  Openings openings;
  std::multiset<Openings::Clock::time_point> starts;
  for (int loop = 0; loop < kLoops; ++loop) starts.insert(kStart);
  for (int program = 0; program < kPrograms; ++program) {
    const auto now = *starts.begin();
    starts.erase(starts.begin());
    Openings::Clock::duration wait{};
    ASSERT_TRUE(openings.Reserve("user", rate, now, &wait)) << "program " << program;
    starts.insert(now + wait + kLasts);
  }
  EXPECT_EQ(openings.refused(), 0u);
}

TEST(OpeningsTest, WhoGoesAwayWaitsNoLonger) {
  Openings openings;
  std::atomic<bool> cancelled{true};
  EXPECT_FALSE(openings.Await("b", kRate, cancelled));
  cancelled = false;
  EXPECT_TRUE(openings.Await("b", kRate, cancelled));
}

TEST(OpeningsTest, ManyIdentitiesAreForgotten) {
  Openings openings;
  Openings::Clock::duration wait{};
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(
        openings.Reserve(std::to_string(i), kRate, kStart + std::chrono::seconds(i), &wait));
  }
}

}  // namespace
}  // namespace longwire::admission
