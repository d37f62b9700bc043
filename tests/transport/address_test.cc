#include "link/certificates/address.h"

#include <gtest/gtest.h>

namespace longwire::transport {
namespace {

std::string Parsed(const char* text) {
  std::string problem;
  auto address = ParseAddress(text, &problem);
  EXPECT_NE(address.has_value(), !problem.empty());
  return address ? address->Text() : "";
}

TEST(Address, ReadsWhatPeopleType) {
  EXPECT_EQ(Parsed("gpu1:7000"), "gpu1:7000");
  EXPECT_EQ(Parsed("gpu1"), "gpu1:7411");
  EXPECT_EQ(Parsed("10.0.0.1:0"), "10.0.0.1:0");
  EXPECT_EQ(Parsed("[::1]:80"), "[::1]:80");
  EXPECT_EQ(Parsed("[fe80::2]"), "[fe80::2]:7411");
}

TEST(Address, RefusesTheRest) {
  for (const char* text : {"", ":80", "a:", "a:b", "a:65536", "a:-1", "a:80x", "::1", "a:1:2",
                           "[::1", "[::1]80", "[]:80", "a: 80"}) {
    EXPECT_EQ(Parsed(text), "") << text;
  }
}

TEST(Address, Lists) {
  std::string problem;
  auto list = ParseAddresses("a:1,b,[::1]:3", &problem).value_or(std::vector<Address>{});
  ASSERT_EQ(list.size(), 3u) << problem;
  EXPECT_EQ(list[1].Text(), "b:7411");
  EXPECT_FALSE(ParseAddresses("a,,b", &problem));
  EXPECT_FALSE(ParseAddresses("a,", &problem));
}

TEST(Address, KnowsLoopback) {
  EXPECT_TRUE(IsLoopback({"127.0.0.1", 1}));
  EXPECT_TRUE(IsLoopback({"127.9.9.9", 1}));
  EXPECT_TRUE(IsLoopback({"::1", 1}));
  EXPECT_TRUE(IsLoopback({"localhost", 1}));
  EXPECT_FALSE(IsLoopback({"0.0.0.0", 1}));
  EXPECT_FALSE(IsLoopback({"::", 1}));
  EXPECT_FALSE(IsLoopback({"128.0.0.1", 1}));
  EXPECT_FALSE(IsLoopback({"127.0.0.1.example.com", 1}));
  EXPECT_FALSE(IsLoopback({"localhost.example.com", 1}));
}

}  // namespace
}  // namespace longwire::transport
