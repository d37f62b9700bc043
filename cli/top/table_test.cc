// Text in columns of a terminal.
#include "cli/top/table.h"

#include <gtest/gtest.h>

#include <clocale>

namespace longwire::cli::top {
namespace {

class TableTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }
};

TEST_F(TableTest, TextIsCutOrFilled) {
  EXPECT_EQ(Fit("abc", 5), "abc  ");
  EXPECT_EQ(Fit("abc", 5, true), "  abc");
  EXPECT_EQ(Fit("abcdef", 3), "abc");
  EXPECT_EQ(Fit("abc", 0), "");
}

TEST_F(TableTest, WidthIsOfTheTerminal) {
  EXPECT_EQ(Width("é"), 1);
  EXPECT_EQ(Width("日本"), 4);
  EXPECT_EQ(Fit("日本", 3), "日 ") << "half a character is none";
  EXPECT_EQ(Fit("e\u0301x", 2), "e\u0301x") << "an accent takes no column";
}

TEST_F(TableTest, WhatMustNotBeShownIsAQuestionMark) {
  EXPECT_EQ(Fit("a\x1b[2Jb\n", 8), "a?[2Jb? ");
  const std::string turned = std::string("\xff\xe2\x80") + "\xae";  // U+202E
  EXPECT_EQ(Fit(turned + "x", 4), "??x ");
}

TEST_F(TableTest, ColumnsAreAsWideAsTheirTexts) {
  Table table({{"NAME", 2}, {"N", 1, true}});
  table.Add({"longer", "1"});
  table.Add({"a", "1234"});
  EXPECT_EQ(table.Lines(0),
            (std::vector<std::string>{"NAME      N", "longer    1", "a      1234"}));
}

TEST_F(TableTest, WhereNotAllFitTheHighestRankGoesFirst) {
  Table table({{"A", 4}, {"B", 4, false, 2}, {"C", 4, false, 1}});
  table.Add({"aaaa", "bbbb", "cccc"});
  EXPECT_EQ(table.Lines(14)[1], "aaaa bbbb cccc");
  EXPECT_EQ(table.Lines(13)[1], "aaaa cccc    ");
  EXPECT_EQ(table.Lines(8)[1], "aaaa    ");
  EXPECT_EQ(table.Lines(3)[1], "   ") << "nothing fits";
}

TEST_F(TableTest, WhatIsLeftGoesToLongTexts) {
  Table table({{"A", 2}, {"B", 2}});
  table.Add({"aaaaaaaa", "bb"});
  EXPECT_EQ(table.Lines(8)[1], "aaaaa bb");
}

TEST_F(TableTest, FiguresAreNeverCut) {
  Table table({{"A", 2}, {"N", 1, true}, {"M", 1, true, 1}});
  table.Add({"aaaaaaaa", "123456789", "5"});
  EXPECT_EQ(table.Lines(14)[1], "aa 123456789 5");
  EXPECT_EQ(table.Lines(13)[1], "aaa 123456789");
}

}  // namespace
}  // namespace longwire::cli::top
