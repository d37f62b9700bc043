#include "wire/switches.h"

#include <gtest/gtest.h>

#include "wire/disabled_names.h"

namespace longwire::wire {
namespace {

class SwitchesTest : public testing::Test {
 protected:
  ~SwitchesTest() override { SetDisabled(before_); }

 private:
  std::string before_{DisabledList()};
};

TEST_F(SwitchesTest, BlanksAroundNamesDoNotCount) {
  SetDisabled(" remap, striped-transfers\t,,swap ,");
  EXPECT_TRUE(IsSwitchedOff("remap"));
  EXPECT_TRUE(IsSwitchedOff("striped-transfers"));
  EXPECT_TRUE(IsSwitchedOff("swap"));
  EXPECT_FALSE(IsSwitchedOff("drain"));
  EXPECT_TRUE(UnknownSwitches().empty());
}

TEST_F(SwitchesTest, PartsOfNamesAreNotTheName) {
  SetDisabled("swa,swaps,trim,rings");
  EXPECT_FALSE(IsSwitchedOff("swap"));
  EXPECT_FALSE(IsSwitchedOff("trim-rings"));
  SetDisabled("");
  EXPECT_FALSE(IsSwitchedOff("swap"));
}

TEST_F(SwitchesTest, EachUnknownNameIsTold) {
  SetDisabled("striped_transfers, scrub, remap,re map");
  EXPECT_EQ((std::vector<std::string>{
                "LONGWIRE_DISABLE names 'striped_transfers', which is no optimisation; "
                "see docs/switches.md",
                "LONGWIRE_DISABLE names 're map', which is no optimisation; see docs/switches.md"}),
            UnknownSwitches())
      << "guards are no optimisations, but known";
}

}  // namespace
}  // namespace longwire::wire
