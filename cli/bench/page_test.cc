// The page of remote against local.
#include "cli/bench/page.h"

#include <gmock/gmock.h>

namespace longwire::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

BenchGroup Group(std::vector<BenchRow> rows) {
  return {"calls", {"a host, a date"}, std::move(rows)};
}

TEST(TimesAsLongTest, TimesAndRates) {
  EXPECT_DOUBLE_EQ(*TimesAsLong({"launch", "us", 3, 6, {}, {}}), 2);
  EXPECT_DOUBLE_EQ(*TimesAsLong({"copy", "GB/s", 50, 10, {}, {}}), 5);
  EXPECT_FALSE(TimesAsLong({"launch", "us", {}, 6, {}, {}}));
  EXPECT_FALSE(TimesAsLong({"launch", "us", 0, 6, {}, {}}));
}

TEST(BenchPageTest, SlowerIsToTheRight) {
  const std::string page =
      BenchPage("bench", {Group({{"slow", "us", 1, 10, {}, {}}, {"quick", "us", 10, 1, {}, {}}})});
  // One decade to either side of 500, the middle of 250 to 750.
  EXPECT_THAT(page, HasSubstr("<rect class=\"more\" x=\"500.0\" y=\"29.0\" width=\"250.0\""));
  EXPECT_THAT(page, HasSubstr("<rect class=\"less\" x=\"250.0\" y=\"51.0\" width=\"250.0\""));
  EXPECT_THAT(page, HasSubstr("1.00 → 10.0 us"));
}

TEST(BenchPageTest, AllFitsTheScale) {
  const std::string page = BenchPage("bench", {Group({{"limit", "us", 0.09, 25, {}, {}}})});
  EXPECT_THAT(page, HasSubstr(">1000×</text>"));
  EXPECT_THAT(page, HasSubstr(">0.001×</text>"));
}

TEST(BenchPageTest, WithoutANativeSideThereIsNoBar) {
  const std::string page = BenchPage("bench", {Group({{"launch", "us", {}, 6, {}, 9}})});
  EXPECT_THAT(page, Not(HasSubstr("<rect")));
  EXPECT_THAT(page, HasSubstr("– → 6.00 us"));
  EXPECT_THAT(page, HasSubstr("<td>9.00</td>"));
}

TEST(BenchPageTest, NeedsNothingElse) {
  const std::string page = BenchPage("<b>\"&", {Group({{"<script>", "us", 1, 2, {}, {}}})});
  for (const char* bad : {"<script", "src=", "href=", "http", "url(", "@import", "<b>"}) {
    EXPECT_THAT(page, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace longwire::cli
