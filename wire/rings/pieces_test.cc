#include "wire/rings/pieces.h"

#include <gtest/gtest.h>

#include "wire/limits.h"

namespace longwire::wire {
namespace {

TEST(PiecesTest, EveryCopyOfTheLogHasSeveral) {
  for (uint64_t total = kInlineCopyBytes * 2; total <= kLaneCopyBytes; total += 4096) {
    EXPECT_LE(LogPiece(total), total / 2);
    EXPECT_GE(LogPiece(total), size_t{64} << 10);
    EXPECT_LE(LogPiece(total), kCopyPieceBytes) << "that much fits into each window";
  }
}

TEST(PiecesTest, TheLogCarriesWhatKeepsItBusy) {
  EXPECT_EQ(LogShare(kLaneCopyBytes, 0), kLaneCopyBytes) << "all of a small one";
  EXPECT_EQ(LogShare(8 << 20, 0), kLogAheadBytes);
  EXPECT_EQ(LogShare(8 << 20, 1 << 20), kLogAheadBytes - (1 << 20));
}

TEST(PiecesTest, NoCallWaitsForMoreThanThat) {
  for (uint64_t backlog = 0; backlog <= 4 * kLogAheadBytes; backlog += 4096) {
    const uint64_t share = LogShare(8 << 20, backlog);
    EXPECT_TRUE(share == 0 || share + backlog <= kLogAheadBytes);
    EXPECT_TRUE(share == 0 || share >= (256u << 10)) << "so few bytes are not worth it";
  }
}

TEST(PiecesTest, LargeCopiesAreTheLanesAlone) {
  EXPECT_NE(LogShare(kBesideLanesBytes, 0), 0u);
  EXPECT_EQ(LogShare(kBesideLanesBytes + 1, 0), 0u);
}

}  // namespace
}  // namespace longwire::wire
