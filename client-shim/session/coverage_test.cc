#include "client-shim/session/coverage.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace longwire::shim {
namespace {

TEST(Coverage, EachByteComesOnce) {
  Coverage coverage;
  EXPECT_TRUE(coverage.Take(0, 4));
  EXPECT_TRUE(coverage.Take(8, 4));
  EXPECT_TRUE(coverage.Take(4, 2));
  EXPECT_FALSE(coverage.Take(0, 1));
  EXPECT_FALSE(coverage.Take(5, 2));
  EXPECT_FALSE(coverage.Take(7, 2));
  EXPECT_FALSE(coverage.Take(11, 8));
  EXPECT_TRUE(coverage.Take(6, 2));
  EXPECT_TRUE(coverage.Take(12, 1));
  EXPECT_FALSE(coverage.Take(2, 20));
  EXPECT_TRUE(coverage.Take(3, 0));
}

TEST(Coverage, AsATableOfBytesSays) {
  constexpr size_t kBytes = 64;
  std::srand(1);
  for (int round = 0; round < 2000; ++round) {
    Coverage coverage;
    std::vector<bool> came(kBytes);
    for (int piece = 0; piece < 40; ++piece) {
      size_t offset = std::rand() % kBytes, bytes = std::rand() % (kBytes - offset) % 12;
      bool fresh = true;
      for (size_t i = offset; i < offset + bytes; ++i) fresh = fresh && !came[i];
      ASSERT_EQ(coverage.Take(offset, bytes), fresh) << offset << " " << bytes;
      for (size_t i = offset; fresh && i < offset + bytes; ++i) came[i] = true;
    }
  }
}

TEST(Coverage, NotInMoreStretchesThanPiecesCanBeOnTheirWay) {
  Coverage coverage;
  for (size_t i = 1; i <= Coverage::kMaxStretches; ++i) ASSERT_TRUE(coverage.Take(2 * i, 1));
  EXPECT_FALSE(coverage.Take(4 * Coverage::kMaxStretches, 1));
}

}  // namespace
}  // namespace longwire::shim
