// longwire policy test: no server, no device; time is the transcript's.
#include <cstdio>
#include <memory>
#include <span>
#include <sstream>

#include "cli/policy/files.h"
#include "policy/advised.h"
#include "scheduler/testing/commands.h"

namespace longwire::cli {
namespace {

using scheduler::testing::Command;

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire policy test: %s\n", sentence.c_str());
  return 1;
}

std::string RunBlock(scheduler::testing::CoreCommands& core, const std::vector<Command>& block) {
  std::string output;
  for (const Command& command : block) output += core.Run(command);
  return output;
}

// The lines that differ, as a person looks for them; the first pair is enough.
void PrintDifference(const std::string& expected, const std::string& printed) {
  std::istringstream left(expected), right(printed);
  std::string one, other;
  for (int line = 1;; ++line) {
    const bool has_one = static_cast<bool>(std::getline(left, one));
    const bool has_other = static_cast<bool>(std::getline(right, other));
    if (!has_one && !has_other) return;
    if (has_one && has_other && one == other) continue;
    std::fprintf(stderr, "line %d of the transcript: %s\nwith the policy:        %s\n", line,
                 has_one ? one.c_str() : "(its end)", has_other ? other.c_str() : "(its end)");
    return;
  }
}

}  // namespace

int TestPolicy(const std::string& object, const std::string& transcript) {
  std::string sentence;
  const auto bytes = ReadPolicyFile(object, &sentence);
  const auto text = bytes ? ReadPolicyFile(transcript, &sentence) : std::nullopt;
  policy::Engine* engine = text ? policy::LoadEngine(&sentence) : nullptr;
  if (engine == nullptr) return Fail(sentence);
  std::shared_ptr<policy::Program> program;
  // Each `core` of the transcript begins with maps as they are at first.
  auto replace = [&](const std::string& name) -> std::unique_ptr<scheduler::Policy> {
    auto fresh =
        policy::Program::Load(object, std::as_bytes(std::span(*bytes)), *engine, &sentence);
    auto built_in = scheduler::MakePolicy(name);
    if (fresh == nullptr || built_in == nullptr) return built_in;
    if (program != nullptr && program->ended()) return built_in;
    program = fresh;
    return policy::MakeAdvised(std::move(built_in), program);
  };
  scheduler::testing::CoreCommands core(replace);
  if (program == nullptr) return Fail(object + ": " + sentence);
  const std::string printed = scheduler::testing::RunTranscript(
      *text, [&](const std::vector<Command>& block) { return RunBlock(core, block); });
  std::fputs(printed.c_str(), stdout);
  if (program->ended()) return Fail("the policy was unloaded: " + program->why_ended());
  if (printed == *text) return 0;
  PrintDifference(*text, printed);
  return 1;
}

}  // namespace longwire::cli
