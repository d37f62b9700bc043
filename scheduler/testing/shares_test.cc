// Shares of GPU time by weight: within 5 %, or two of the longest kernels if that is more, over
// 20 s, whatever the kernels' lengths and however many a program launches between two waits. Random
// mixes on the virtual clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "scheduler/simulate/random.h"
#include "scheduler/simulate/simulation.h"

namespace longwire::scheduler::simulate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kSpan = seconds(20);
constexpr int kMixes = 300;

// As longwired sets it: the longest kernel still drains.
Options LongDrains() {
  Options options;
  options.drain_lengths = 60;
  return options;
}

// As many short ones as long ones.
Time LogUniform(Random& random, Time low, Time high) {
  const double times =
      std::log(static_cast<double>(high.count()) / static_cast<double>(low.count()));
  return Time(
      static_cast<int64_t>(static_cast<double>(low.count()) * std::exp(random.Unit() * times)));
}

Profile AnyProgram(Random& random, size_t number) {
  Profile profile;
  profile.tenant = "t" + std::to_string(number);
  profile.weight = static_cast<uint32_t>(random.Between(1, 10));
  profile.kernel = LogUniform(random, microseconds(10), milliseconds(500));
  profile.kernels = static_cast<uint32_t>(random.Between(1, 64));
  // From a wait's end to the next launch: what a call takes here or over a network, shorter than a
  // turn, and not most of the program's time.
  const Time burst = profile.kernel * profile.kernels;
  const Time most = std::min<Time>(milliseconds(8), std::max<Time>(4 * burst, microseconds(180)));
  profile.think = LogUniform(random, microseconds(15), most);
  profile.regular = true;
  return profile;
}

std::string Describe(const Profile& profile) {
  char text[120];
  std::snprintf(text, sizeof text, "%s: weight %u, %u kernels of %.3f ms, gap %.3f ms",
                profile.tenant.c_str(), profile.weight, profile.kernels,
                static_cast<double>(profile.kernel.count()) / 1e6,
                static_cast<double>(profile.think.count()) / 1e6);
  return text;
}

void ExpectSharesByWeight(const std::vector<Profile>& mix, const Result& result) {
  double used = 0, weights = 0;
  Time longest{0};
  for (size_t i = 0; i < mix.size(); ++i) {
    used += static_cast<double>(result.tenants[i].gpu_time.count());
    weights += mix[i].weight;
    longest = std::max(longest, mix[i].kernel);
  }
  for (size_t i = 0; i < mix.size(); ++i) {
    const double due = used * mix[i].weight / weights;
    const double bound = std::max(0.05 * due, 2.0 * static_cast<double>(longest.count()));
    EXPECT_NEAR(static_cast<double>(result.tenants[i].gpu_time.count()) / 1e6, due / 1e6,
                bound / 1e6)
        << Describe(mix[i]);
  }
}

TEST(Shares, FollowTheWeightsInAnyMixOfKernelsAndBatches) {
  const auto policy = MakePolicy("weighted_fair");
  for (uint64_t seed = 1; seed <= kMixes; ++seed) {
    Random random(seed);
    std::vector<Profile> mix(random.Between(2, 5));
    for (size_t i = 0; i < mix.size(); ++i) mix[i] = AnyProgram(random, i);
    std::string text;
    for (const Profile& profile : mix) text += "\n  " + Describe(profile);
    SCOPED_TRACE("mix " + std::to_string(seed) + ":" + text);
    ExpectSharesByWeight(mix, Simulation(mix, *policy, LongDrains(), seed).Run(kSpan));
  }
}

}  // namespace
}  // namespace longwire::scheduler::simulate
