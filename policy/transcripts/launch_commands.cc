#include "policy/transcripts/launch_commands.h"

#include <sstream>
#include <stdexcept>
#include <vector>

#include "base/name_number.h"
#include "policy/key.h"
#include "policy/launching.h"

namespace longwire::policy {

using scheduler::testing::Command;
using scheduler::testing::ParseNumber;

namespace {

// "2", "2,3" or "2,3,4".
void ReadSizes(const std::string& text, uint32_t (*sizes)[3]) {
  std::istringstream words(text);
  std::string word;
  for (uint32_t& size : *sizes) {
    size = 1;
    if (std::getline(words, word, ',')) size = static_cast<uint32_t>(ParseNumber(word));
  }
}

std::string Said(const lw_launch& launch) {
  std::string said;
  auto add = [&](const std::string& what) { said += (said.empty() ? "" : ", ") + what; };
  if (launch.priority != LW_AS_THE_PROGRAM_SAYS) {
    add("priority " + std::to_string(launch.priority));
  }
  if (launch.shared_memory != LW_AS_THE_PROGRAM_SAYS) {
    add("shared memory " + std::to_string(launch.shared_memory) + " %");
  }
  constexpr const char* kClusters[] = {"the driver's default", "spread", "load balancing"};
  if (launch.clusters != LW_AS_THE_PROGRAM_SAYS) {
    add(std::string("clusters ") + kClusters[launch.clusters]);
  }
  if (said.empty()) said = "as the program says";
  return said + (launch.each == 1 ? ", for this shape" : ", for all launches");
}

}  // namespace

void SetInMap(const Command& command, Program* program) {
  Map* map = program == nullptr ? nullptr : program->maps().Find(command.Word(1));
  const auto key = ParseKey(command.Word(2));
  if (map == nullptr || !key || !map->Set(*key, ParseNumber(command.Word(3)))) {
    throw std::invalid_argument("the policy has no such map, or that no such key: " + command.line);
  }
}

std::string LaunchCommands::Launch(const Command& command) {
  lw_launch launch{};
  launch.session = command.Number("session", 1);
  launch.tenant = base::NumberOfName(command.Text("tenant", "default"));
  launch.kernel = base::NumberOfName(command.Word(1));
  launch.device = static_cast<uint32_t>(command.Number("device", 0));
  launch.shared_bytes = static_cast<uint32_t>(command.Number("shared", 0));
  ReadSizes(command.Text("grid", "1"), &launch.grid);
  ReadSizes(command.Text("block", "1"), &launch.block);
  command.CheckAllUsed();
  if (program_ == nullptr || !AskLaunch(*program_, &launch)) return "as the program says\n";
  return Said(launch) + "\n";
}

std::string LaunchCommands::Run(const Command& command) {
  const std::string& verb = command.Word(0);
  if (verb == "launch") return Launch(command);
  if (verb != "set") throw std::invalid_argument("there is no command '" + verb + "'");
  SetInMap(command, program_.get());
  return "";
}

}  // namespace longwire::policy
