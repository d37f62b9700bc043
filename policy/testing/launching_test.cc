#include "policy/launching.h"

#include <gtest/gtest.h>

#include "base/name_number.h"
#include "policy/key.h"
#include "policy/testing/load.h"

namespace longwire::policy::testing {
namespace {

std::shared_ptr<Program> MustLoad(const std::string& name) {
  std::string sentence;
  auto program = TryLoad(name, &sentence);
  EXPECT_NE(nullptr, program) << sentence;
  return program;
}

TEST(LaunchingTest, WhatThereIsNoOpinionAboutStaysAsItIs) {
  auto program = MustLoad("urgent_kernels");
  lw_launch launch{};
  launch.kernel = base::NumberOfName("_Z3AddPii");
  EXPECT_FALSE(AskLaunch(*program, &launch));
  EXPECT_EQ(LW_AS_THE_PROGRAM_SAYS, launch.priority);
  EXPECT_EQ(LW_AS_THE_PROGRAM_SAYS, launch.shared_memory);
  EXPECT_EQ(LW_AS_THE_PROGRAM_SAYS, launch.clusters);
  program->maps().Find("urgent")->Set(*ParseKey("kernel:_Z3AddPii"), 7);
  ASSERT_TRUE(AskLaunch(*program, &launch));
  EXPECT_EQ(7u, launch.priority);
  EXPECT_EQ(0u, launch.shared_memory);
  EXPECT_EQ(0u, launch.each);
}

TEST(LaunchingTest, AnAnswerThatCannotBeEndsIt) {
  auto program = MustLoad("launch_nonsense");
  lw_launch launch{};
  EXPECT_FALSE(AskLaunch(*program, &launch));
  EXPECT_EQ(LW_AS_THE_PROGRAM_SAYS, launch.priority);
  EXPECT_NE(std::string::npos,
            program->why_ended().find("launch_fast answered nonsense: a priority of 500"))
      << program->why_ended();
}

TEST(KeyTest, KeysAreNumbersOrNames) {
  EXPECT_EQ(12u, ParseKey("12"));
  EXPECT_EQ(base::NumberOfName("a:b"), ParseKey("tenant:a:b"));
  EXPECT_EQ(base::NumberOfName("_Z3AddPii"), ParseKey("kernel:_Z3AddPii"));
  for (const char* wrong : {"", "-1", "12x", "module:a", "18446744073709551616"}) {
    EXPECT_EQ(std::nullopt, ParseKey(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace longwire::policy::testing
