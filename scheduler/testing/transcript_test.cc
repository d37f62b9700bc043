// Runs the transcripts under testdata/. With --rewrite they get what is printed now.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "scheduler/testing/commands.h"

namespace longwire::scheduler::testing {
namespace {

bool rewrite = false;

std::vector<std::string> ListTranscripts() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(LONGWIRE_TESTDATA)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TranscriptTest, PrintsWhatItSays) {
  const auto path = std::filesystem::path(LONGWIRE_TESTDATA) / (GetParam() + ".txt");
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  ASSERT_TRUE(text.str().starts_with("# ")) << "its first paragraph says the property";

  CoreCommands core;
  PlacementCommands placement;
  PoolCommands pool;
  const std::string result =
      RunTranscript(text.str(), [&](const std::vector<Command>& block) -> std::string {
        if (block.empty()) return "error: no commands\n";
        if (block.front().Word(0) == "simulate") return RunSimulation(block);
        std::string output;
        for (const Command& command : block) {
          const std::string& verb = command.Word(0);
          const bool places = verb == "device" || verb == "place" || verb == "server" ||
                              verb == "occupy" || verb == "rebalance";
          const bool pools = verb == "pool" || verb == "host" || verb == "ask" || verb == "queue";
          if (pools) output += pool.Run(command);
          if (pools) continue;
          output += places ? placement.Run(command) : core.Run(command);
        }
        return output;
      });
  if (rewrite) {
    std::ofstream(path) << result;
  } else {
    EXPECT_EQ(text.str(), result) << path << ": --rewrite keeps the new text";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TranscriptTest, ::testing::ValuesIn(ListTranscripts()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longwire::scheduler::testing

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  for (int i = 1; i < count; ++i) {
    longwire::scheduler::testing::rewrite |= std::string_view(words[i]) == "--rewrite";
  }
  return RUN_ALL_TESTS();
}
