// longwire policy test: no server, no device; time is the transcript's.
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <sstream>

#include "cli/policy/files.h"
#include "policy/advised.h"
#include "policy/transcripts/launch_commands.h"
#include "scheduler/testing/commands.h"
#include "server/keeper/swap_advice/swap_commands.h"

namespace longwire::cli {
namespace {

using scheduler::testing::Command;

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire policy test: %s\n", sentence.c_str());
  return 1;
}

using Make = std::function<std::shared_ptr<policy::Program>()>;

// What a transcript is about, by its first command.
enum class About { kScheduler, kSwaps, kLaunches };
About AboutWhat(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const Command command(line);
    const std::string verb = command.words.empty() ? "" : command.words[0];
    if (verb == "set") continue;
    if (verb == "launch") return About::kLaunches;
    return verb == "add" ? About::kSwaps : About::kScheduler;
  }
  return About::kScheduler;
}

template <class Commands>
std::string RunWith(Commands& commands, const std::string& text) {
  return scheduler::testing::RunTranscript(text, [&](const std::vector<Command>& block) {
    std::string output;
    for (const Command& command : block) output += commands.Run(command);
    return output;
  });
}

std::string RunAll(const std::string& text, const Make& make) {
  if (AboutWhat(text) == About::kSwaps) {
    keeper::SwapCommands swaps(make());
    return RunWith(swaps, text);
  }
  if (AboutWhat(text) == About::kLaunches) {
    policy::LaunchCommands launches(make());
    return RunWith(launches, text);
  }
  // Each `core` of the transcript begins with maps as they are at first.
  scheduler::testing::CoreCommands core([&](const std::string& name) {
    auto built_in = scheduler::MakePolicy(name);
    auto program = built_in == nullptr ? nullptr : make();
    return program == nullptr ? std::move(built_in)
                              : policy::MakeAdvised(std::move(built_in), std::move(program));
  });
  return RunWith(core, text);
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
  auto make = [&]() -> std::shared_ptr<policy::Program> {
    if (program != nullptr && program->ended()) return nullptr;
    auto fresh =
        policy::Program::Load(object, std::as_bytes(std::span(*bytes)), *engine, &sentence);
    if (fresh != nullptr) program = fresh;
    return fresh;
  };
  if (make() == nullptr) return Fail(object + ": " + sentence);
  const std::string printed = RunAll(*text, make);
  std::fputs(printed.c_str(), stdout);
  if (program->ended()) return Fail("the policy was unloaded: " + program->why_ended());
  if (printed == *text) return 0;
  PrintDifference(*text, printed);
  return 1;
}

}  // namespace longwire::cli
