// The examples strict_priority and weighted_fair give the scheduler's transcripts as what is built
// in gives them. Behind each stands the other built-in policy: one that answered nothing is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "policy/advised.h"
#include "policy/testing/load.h"
#include "scheduler/testing/commands.h"

namespace longwire::policy::testing {
namespace {

using scheduler::testing::Command;

std::unique_ptr<scheduler::Policy> Advise(const std::string& name, const std::string& object) {
  std::string sentence;
  auto program = TryLoad(object, &sentence);
  if (program == nullptr) throw std::invalid_argument(sentence);
  auto other =
      scheduler::MakePolicy(name == "strict_priority" ? "weighted_fair" : "strict_priority");
  return MakeAdvised(std::move(other), std::move(program));
}

// Of the scheduler alone: placement, pools and simulations have no policy of this kind.
bool IsOfCore(const std::string& text) {
  return text.find("\nopen ") != std::string::npos && text.find("\nsimulate ") == std::string::npos;
}

struct Compared {
  int same = 0;
  std::string different;  // names of files
};

Compared Compare(const scheduler::testing::CoreCommands::Replace& replace) {
  Compared compared;
  for (const auto& entry : std::filesystem::directory_iterator(SCHEDULER_TESTDATA)) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    if (entry.path().extension() != ".txt" || !IsOfCore(text.str())) continue;
    scheduler::testing::CoreCommands core(replace);
    const std::string printed =
        scheduler::testing::RunTranscript(text.str(), [&](const std::vector<Command>& block) {
          std::string output;
          for (const Command& command : block) output += core.Run(command);
          return output;
        });
    if (printed == text.str()) {
      ++compared.same;
    } else {
      compared.different += entry.path().filename().string() + " ";
    }
  }
  return compared;
}

TEST(TranscriptsTest, ExamplesPrintWhatTheBuiltInPoliciesPrint) {
  const Compared compared = Compare([](const std::string& name) { return Advise(name, name); });
  EXPECT_EQ("", compared.different);
  EXPECT_GE(compared.same, 10);
}

TEST(TranscriptsTest, APolicyThatDoesNotAnswerIsSeen) {
  const Compared compared = Compare([](const std::string& name) { return Advise(name, "terms"); });
  EXPECT_NE("", compared.different);
}

}  // namespace
}  // namespace longwire::policy::testing
