// Runs the transcripts of the swap policy (server/keeper/testdata): a paragraph that says the
// property, commands (server/keeper/swap_advice/swap_commands.h), and behind "----" what they
// print.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/keeper/swap_advice/swap_commands.h"

namespace longwire::keeper {
namespace {

using scheduler::testing::Command;

class SwapPolicyTest : public testing::TestWithParam<std::string> {};

TEST_P(SwapPolicyTest, AnswersWhatItSays) {
  std::ifstream file(std::filesystem::path(TESTDATA) / (GetParam() + ".txt"));
  ASSERT_TRUE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  SwapCommands commands;
  size_t blocks = 0;
  const std::string printed =
      scheduler::testing::RunTranscript(text, [&](const std::vector<Command>& block) {
        std::string output;
        ++blocks;
        for (const Command& command : block) output += commands.Run(command);
        return output;
      });
  EXPECT_EQ(text, printed);
  EXPECT_GT(blocks, 0u);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TESTDATA)) {
    names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Transcripts, SwapPolicyTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longwire::keeper
