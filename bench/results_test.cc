// What is read from results.
#include "bench/results.h"

#include <gmock/gmock.h>

namespace longwire::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ResultsTest, FiguresOfBenchGpu) {
  const auto group = ReadResults("calls",
                                 "One H100, 16 cores.\n\nstream_ping   15.69 us\n"
                                 "figure     native  longwire unit longwire/native\n"
                                 "launch       2.97      0.44 us   0.15\n"
                                 "h2d_1MiB    10.00      5.00 GB/s 0.50\n\nraw output: x\n");
  EXPECT_THAT(group.facts, ElementsAre("One H100, 16 cores.", "stream_ping   15.69 us"));
  ASSERT_THAT(group.rows, SizeIs(2));
  EXPECT_EQ(group.rows[0].name, "launch");
  EXPECT_EQ(group.rows[1].unit, "GB/s");
  EXPECT_DOUBLE_EQ(*cli::TimesAsLong(group.rows[1]), 2);
}

TEST(ResultsTest, ProgramsThatDidTheSame) {
  const auto group = ReadResults("apps",
                                 "apps: program    native s remote s\n"
                                 "vector_add.static    0.83     0.07  equal\n"
                                 "broken.static        0.80     0.10  BAD\n"
                                 "apps: 1 equal, 1 bad, 0 left out\n");
  ASSERT_THAT(group.rows, SizeIs(2));
  EXPECT_TRUE(cli::TimesAsLong(group.rows[0]));
  EXPECT_FALSE(cli::TimesAsLong(group.rows[1]));
}

TEST(ResultsTest, OtherOutputStaysAsItIs) {
  const auto group = ReadResults("sizes", "One H100\n$ sizes\nup_4KiB 0.5 GB/s\n");
  EXPECT_THAT(group.rows, IsEmpty());
  EXPECT_THAT(group.facts, ElementsAre("One H100"));
  EXPECT_EQ(group.raw, "One H100\n$ sizes\nup_4KiB 0.5 GB/s\n");
}

}  // namespace
}  // namespace longwire::bench
