// Times, records and sums of longwire usage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage/sums.h"

namespace longwire::cli::usage {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNow = 1'700'000'000 * kSecond;  // 2023-11-14T22:13:20Z

int64_t Time(const std::string& text) {
  int64_t time = -1;
  EXPECT_TRUE(ParseTime(text, kNow, &time)) << text;
  return time;
}

TEST(Time, IsADateOrSoLongAgo) {
  EXPECT_EQ(Time("2023-11-14T22:13:20Z"), kNow);
  EXPECT_EQ(Time("2023-11-14T22:13:20"), kNow);
  EXPECT_EQ(Time("2023-11-14T22:13"), kNow - 20 * kSecond);
  EXPECT_EQ(Time("2023-11-14"), kNow - (22 * 3600 + 13 * 60 + 20) * kSecond);
  EXPECT_EQ(Time("2023-11-14T22:13:20.123Z"), kNow + 123'000);
  EXPECT_EQ(Time("90s"), kNow - 90 * kSecond);
  EXPECT_EQ(Time("2min"), kNow - 120 * kSecond);
  EXPECT_EQ(Time("36h"), kNow - 36 * 3600 * kSecond);
  EXPECT_EQ(Time("7d"), kNow - 7 * 86400 * kSecond);
  EXPECT_EQ(Time("1w"), Time("7d"));
}

TEST(Time, AllElseIsRefused) {
  int64_t time = 0;
  for (const char* text : {"", "yesterday", "7", "d", "7x", "-7d", "99999999999999999999d",
                           "2023-13-01", "2023-04-31", "2023-11-14T", "2023-11-14T22",
                           "2023-11-14 x", "2023-11-14T22:13:20.", "2023-11-14T22:13:20+01:00"}) {
    EXPECT_FALSE(ParseTime(text, kNow, &time)) << text;
  }
}

std::string Line(const std::string& more) {
  return R"({"session":1,"identity":"alice","tenant":"research","program":"./a",)"
         R"("ended":"2023-11-14T22:13:20.000Z","gpu_seconds":1.5,"bytes_up":10,"bytes_down":20,)"
         R"("calls":3)" +
         more + "}";
}

TEST(ParseRecord, TakesWhatLongwiredWrites) {
  const Record record =
      ParseRecord(Line(R"(,"memory_byte_hours":2048,"memory_estimated":true)")).value_or(Record());
  EXPECT_EQ(record.identity, "alice");
  EXPECT_EQ(record.ended, kNow);
  EXPECT_TRUE(record.known);
  EXPECT_TRUE(record.estimated);
  EXPECT_EQ(record.memory_byte_hours, 2048);
  EXPECT_TRUE(ParseRecord(Line(R"(,"memory_byte_hours":1,"of a later version":{"a":[1]})")));
}

TEST(ParseRecord, WhatIsNotKnownIsNotNothing) {
  const Record record = ParseRecord(Line(R"(,"memory_byte_hours":null)")).value_or(Record());
  EXPECT_EQ(record.identity, "alice");
  EXPECT_FALSE(record.known);
}

TEST(ParseRecord, AllElseIsNone) {
  const std::string whole = Line(R"(,"memory_byte_hours":1)");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseRecord(whole.substr(0, length))) << length;
  }
  for (const std::string& line :
       {Line(""), Line(R"(,"memory_byte_hours":-1)"), Line(R"(,"memory_byte_hours":"1")"),
        whole + whole, "[" + whole + "]", std::string("\0\xff", 2), std::string("null"),
        std::string(5000, '['), Line(R"(,"memory_byte_hours":1e999)")}) {
    EXPECT_FALSE(ParseRecord(line)) << line.substr(0, 80);
  }
}

Record Example(const std::string& tenant, int64_t ended) {
  Record record;
  record.tenant = tenant;
  record.identity = tenant + "'s";
  record.program = "./a";
  record.ended = ended;
  record.known = true;
  record.gpu_seconds = 1.5;
  record.memory_byte_hours = 1 << 30;
  record.bytes_up = 1024;
  record.calls = 7;
  return record;
}

TEST(Sums, OfTheTimeThatIsAskedForOnly) {
  Options options;
  options.since = 10;
  options.until = 20;
  Sums sums;
  for (int64_t ended : {9, 10, 19, 20}) sums.Add(Example("a", ended), options);
  EXPECT_EQ(sums.total.sessions, 2u);
}

TEST(Sums, AreATableAndSayWhatTheyLack) {
  Options options;
  Sums sums;
  sums.Add(Example("a", 1), options);
  sums.Add(Example("é\n", 1), options);
  Record unknown = Example("a", 1);
  unknown.known = false;
  sums.Add(unknown, options);
  sums.read.damaged = 2;
  EXPECT_EQ(SumsText(sums, options),
            "TENANT  SESSIONS  GPU TIME  MEMORY x TIME       UP  DOWN  CALLS\n"
            "a              2   1.500 s      1.0 GiB h  1.0 KiB   0 B      7\n"
            "é?             1   1.500 s      1.0 GiB h  1.0 KiB   0 B      7\n"
            "(all)          3   3.000 s      2.0 GiB h  2.0 KiB   0 B     14\n"
            "sessions that ended while there was no longwired: 1; what they used is not known and "
            "not in the sums\n"
            "damaged lines: 2; what they told is not in the sums\n");
}

TEST(Sums, AreJson) {
  Options options;
  options.by = By::kIdentity;
  Sums sums;
  sums.Add(Example("a", 1), options);
  EXPECT_EQ(SumsJson(sums, options),
            "{\"by\":\"identity\",\"groups\":[{\"identity\":\"a's\",\"sessions\":1,"
            "\"sessions_unknown\":0,\"sessions_estimated\":0,\"gpu_seconds\":1.500000,"
            "\"memory_byte_hours\":1073741824.000000,\"bytes_up\":1024,\"bytes_down\":0,"
            "\"calls\":7}],\"total\":{\"sessions\":1,\"sessions_unknown\":0,"
            "\"sessions_estimated\":0,\"gpu_seconds\":1.500000,"
            "\"memory_byte_hours\":1073741824.000000,\"bytes_up\":1024,\"bytes_down\":0,"
            "\"calls\":7},\"lines\":0,\"damaged_lines\":0}");
}

}  // namespace
}  // namespace longwire::cli::usage
