#include "server/admission/capacity.h"

#include <gtest/gtest.h>

#include <vector>

namespace longwire::admission {
namespace {

constexpr Capacity::Limits kLimits{3, 5};

TEST(CapacityTest, OnePartyLeavesRoomToOthers) {
  Capacity shares;
  std::vector<Capacity::Share> held;
  for (int i = 0; i < 10; ++i) {
    if (auto share = shares.Take("a", kLimits)) held.push_back(std::move(*share));
  }
  EXPECT_EQ(held.size(), 3u);
  EXPECT_EQ(shares.refused(), 7u);
  auto b = shares.Take("b", kLimits), c = shares.Take("c", kLimits);
  EXPECT_TRUE(b && c);
  EXPECT_FALSE(shares.Take("d", kLimits));  // as many as all may have
  held.pop_back();
  EXPECT_TRUE(shares.Take("d", kLimits));
}

TEST(CapacityTest, AShareIsGivenBackOnce) {
  Capacity shares;
  {
    auto share = shares.Take("a", kLimits);
    Capacity::Share moved = std::move(*share);
    moved.Leave();
    moved.Leave();
    EXPECT_EQ(shares.taken(), 0u);
  }
  EXPECT_EQ(shares.taken(), 0u);
}

// Who has a session may resume it, whatever others do.
TEST(CapacityTest, APartysOwnSharesAreApart) {
  Capacity shares;
  std::vector<Capacity::Share> held;
  for (const char* party : {"x", "y", "z"}) {
    for (int i = 0; i < 3; ++i) {
      if (auto share = shares.Take(party, kLimits)) held.push_back(std::move(*share));
    }
  }
  EXPECT_EQ(held.size(), 5u);
  EXPECT_FALSE(shares.Take("a", kLimits));
  auto first = shares.Take("a", kLimits, 2), second = shares.Take("a", kLimits, 2);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(shares.Take("a", kLimits, 2));
  first->Leave();
  EXPECT_TRUE(shares.Take("a", kLimits, 2));
}

}  // namespace
}  // namespace longwire::admission
