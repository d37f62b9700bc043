#include "wire/number.h"

#include <gtest/gtest.h>

namespace longwire::wire {
namespace {

TEST(Number, IsAllOfTheTextOrNone) {
  EXPECT_EQ(ParseNumber("0", 0, 9), 0);
  EXPECT_EQ(ParseNumber("-3", -3, 9), -3);
  EXPECT_EQ(ParseNumber("007", 0, 9), 7);
  for (const char* none : {"", " 1", "1 ", "+1", "abc", "1x", "0x1", "1.5", "1e3", "-", "--1"}) {
    EXPECT_FALSE(ParseNumber(none, -100, 10'000)) << none;
  }
}

TEST(Number, IsWithinItsBounds) {
  EXPECT_EQ(ParseNumber("64", 0, 64), 64);
  EXPECT_FALSE(ParseNumber("65", 0, 64));
  EXPECT_FALSE(ParseNumber("-1", 0, 64));
  EXPECT_EQ(ParseNumber("9223372036854775807", 0, INT64_MAX), INT64_MAX);
  EXPECT_FALSE(ParseNumber("9223372036854775808", 0, INT64_MAX));
  EXPECT_FALSE(ParseNumber("4294967297", 0, 100)) << "which is 1 in 32 bits";
}

TEST(Number, EveryPartOfAListIsOne) {
  EXPECT_EQ(ParseNumbers("3", 0, 9), std::vector<int32_t>{3});
  EXPECT_EQ(ParseNumbers("0,2,1", 0, 9), (std::vector<int32_t>{0, 2, 1}));
  for (const char* none : {"", ",", "1,", ",1", "1,,2", "1,x", "1;2", "1, 2", "1,10"}) {
    EXPECT_FALSE(ParseNumbers(none, 0, 9)) << none;
  }
}

}  // namespace
}  // namespace longwire::wire
