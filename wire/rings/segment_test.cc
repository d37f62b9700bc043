#include "wire/rings/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace longwire::wire {
namespace {

constexpr uint64_t kBytes = 1 << 20;

TEST(Segment, TwoMappingsAreTheSameMemory) {
  Descriptor file = MakeSegment("test", kBytes);
  auto one = SegmentMapping::Map(file.get(), kBytes);
  auto other = SegmentMapping::Map(file.get(), kBytes);
  ASSERT_TRUE(one != nullptr && other != nullptr);
  one->data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(std::byte{7}, other->data()[kBytes - 1]);
}

TEST(Segment, ItsSizeIsForEver) {
  Descriptor file = MakeSegment("test", kBytes);
  ASSERT_TRUE(IsSegment(file.get(), kBytes));
  EXPECT_EQ(-1, ftruncate(file.get(), kBytes / 2));
  EXPECT_EQ(-1, ftruncate(file.get(), kBytes * 2));
  EXPECT_EQ(-1, fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE));
}

TEST(Segment, AFileThatCanShrinkIsNone) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(0, ftruncate(file.get(), kBytes));
  EXPECT_FALSE(IsSegment(file.get(), kBytes));
  ASSERT_EQ(0, fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
  EXPECT_FALSE(IsSegment(file.get(), kBytes)) << "its seals could still change";
  EXPECT_EQ(nullptr, SegmentMapping::Map(file.get(), kBytes));
}

TEST(Segment, OfAnotherSizeIsNone) {
  Descriptor file = MakeSegment("test", kBytes);
  EXPECT_FALSE(IsSegment(file.get(), 2 * kBytes));
  EXPECT_FALSE(IsSegment(-1, kBytes));
}

}  // namespace
}  // namespace longwire::wire
