#include "server/driver/process_options.h"

#include <gtest/gtest.h>

namespace longwire {
namespace {

class ProcessOptionsTest : public testing::Test {
 protected:
  std::string Parse(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const ProcessOption options[] = {{"--driver", &driver_},
                                     {"--control", &control_},
                                     {"--reserve", &reserve_, int64_t{1} << 32},
                                     {"--device", &devices_}};
    return ParseProcessOptions(pointers, options);
  }

  std::string driver_ = "auto";
  int64_t control_ = -1, reserve_ = -1;
  std::vector<int32_t> devices_ = {0};
};

TEST_F(ProcessOptionsTest, EachOptionSetsItsValue) {
  EXPECT_EQ(
      Parse({"--control", "3", "--device", "1,2", "--driver", "software", "--reserve", "2097152"}),
      "");
  EXPECT_EQ(driver_, "software");
  EXPECT_EQ(control_, 3);
  EXPECT_EQ(reserve_, 2097152);
  EXPECT_EQ(devices_, (std::vector<int32_t>{1, 2}));
}

TEST_F(ProcessOptionsTest, WhatIsNotGivenStays) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(driver_, "auto");
  EXPECT_EQ(control_, -1);
  EXPECT_EQ(devices_, std::vector<int32_t>{0});
}

TEST_F(ProcessOptionsTest, TheLastOfANameCounts) {
  EXPECT_EQ(Parse({"--control", "3", "--control", "4"}), "");
  EXPECT_EQ(control_, 4);
}

TEST_F(ProcessOptionsTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(Parse({"--control"}), "--control needs a value");
  EXPECT_EQ(Parse({"--device", "0", "--control"}), "--control needs a value");
  EXPECT_EQ(Parse({"--frob", "1"}), "unknown option '--frob'");
  EXPECT_EQ(Parse({"--control", "3x"}), "--control expects a number, found '3x'");
  EXPECT_EQ(Parse({"--control", "2097152"}), "--control expects a number, found '2097152'");
  EXPECT_EQ(Parse({"--device", "0,"}), "--device expects a number, found '0,'");
}

}  // namespace
}  // namespace longwire
