#include "policy/maps.h"

#include <gtest/gtest.h>

#include "policy/include/longwire/policy.h"

namespace longwire::policy {
namespace {

using Entries = std::vector<std::pair<uint64_t, uint64_t>>;

TEST(MapsTest, ArrayHasItsKeysAndNoOther) {
  Maps maps({{"counts", LW_ARRAY, 4}});
  Map& map = *maps.At(0);
  EXPECT_EQ(0u, map.Get(3));
  EXPECT_TRUE(map.Set(3, 7));
  EXPECT_EQ(9u, map.Add(3, 2));
  EXPECT_FALSE(map.Set(4, 1));
  EXPECT_EQ(std::nullopt, map.Get(4));
  EXPECT_EQ(std::nullopt, map.Add(~uint64_t{0}, 1));
  EXPECT_EQ((Entries{{3, 9}}), map.Entries());
}

TEST(MapsTest, HashTakesAsManyKeysAsItWasMadeFor) {
  Maps maps({{"ranks", LW_HASH, 1000}});
  Map& map = *maps.Find("ranks");
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_TRUE(map.Set(key << 40, key + 1)) << key;
  EXPECT_FALSE(map.Set(1, 1));
  EXPECT_EQ(std::nullopt, map.Add(2, 1));
  EXPECT_TRUE(map.Set(uint64_t{5} << 40, 77)) << "a key that is there has room";
  EXPECT_EQ(77u, map.Get(uint64_t{5} << 40));
  EXPECT_EQ(std::nullopt, map.Get(3));
  EXPECT_EQ(1000u, map.Entries().size());
}

TEST(MapsTest, UnknownOnesAreNull) {
  Maps maps({{"a", LW_ARRAY, 1}});
  EXPECT_EQ(nullptr, maps.At(1));
  EXPECT_EQ(nullptr, maps.Find("b"));
}

// A hook's time is bounded by the number of its calls, whatever the keys are.
TEST(MapsTest, KeysThatAllCollideFindNoRoomSoon) {
  Maps maps({{"map", LW_HASH, 1024}});
  Map& map = *maps.At(0);
  const auto home = [](uint64_t key) { return ((key * 0x9e3779b97f4a7c15) >> 32) & 2047; };
  uint64_t kept = 0;
  for (uint64_t key = 0; key < 400'000; ++key) {
    if (home(key) != 7) continue;
    kept += map.Set(key, key + 1) ? 1 : 0;
  }
  EXPECT_EQ(128u, kept);
  EXPECT_EQ(128u, map.Entries().size());
  uint64_t other = 0;
  while (home(other) != 1000) ++other;
  EXPECT_TRUE(map.Set(other, 1));
}

}  // namespace
}  // namespace longwire::policy
