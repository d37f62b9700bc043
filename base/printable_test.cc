#include "base/printable.h"

#include <gtest/gtest.h>

namespace longwire::base {
namespace {

TEST(PrintableTest, TextStaysAsItIs) {
  for (const char* text : {"", "trainer --lr 0.1", "\u00e9t\u00e9", "\u8bad\u7ec3", "\U0001f600"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, NothingThatATerminalObeys) {
  EXPECT_EQ(Printable("a\x1b[31m\nFAKE\r\t\x7f"), "a?[31m?FAKE???");
  EXPECT_EQ(Printable("a\u0080\u0085\u009b31m\u009f"), "a???31m?");
  EXPECT_EQ(Printable("\u2028\u2029"), "??");
  EXPECT_EQ(Printable(std::string_view("\0x", 2)), "?x");
}

TEST(PrintableTest, NothingThatTurnsTextAround) {
  for (const char* sign : {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067",
                           "\u2068", "\u2069", "\u200e", "\u200f", "\u061c"}) {
    EXPECT_EQ(Printable(sign + std::string("x")), "?x");
  }
}

TEST(PrintableTest, BytesThatAreNoCharacters) {
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(Printable("\xc2"), "?");
  EXPECT_EQ(Printable("\xc1\x9b"), "??");            // a longer form of 0x5b
  EXPECT_EQ(Printable("\xe0\x82\x9b"), "???");       // a longer form of U+009B
  EXPECT_EQ(Printable("\xf0\x80\x82\x9b"), "????");  // likewise
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
}

}  // namespace
}  // namespace longwire::base
