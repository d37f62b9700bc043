#include "server/keeper/swap_advice/swap_commands.h"

#include <stdexcept>

#include "base/name_number.h"
#include "policy/transcripts/launch_commands.h"

namespace longwire::keeper {

using scheduler::testing::Command;
using scheduler::testing::FormatTime;
using scheduler::testing::ParseNumber;

namespace {

// An owner is a letter, or a word by its first one.
uint64_t OwnerOf(const std::string& name) {
  return static_cast<uint64_t>(static_cast<unsigned char>(name.at(0)));
}

}  // namespace

SwapCommands::SwapCommands(std::shared_ptr<policy::Program> program)
    : program_(std::move(program)), policy_(LeastRecentlyUsed(), 0, [this] { return now_; }) {
  policy_.Use(program_);
}

void SwapCommands::Add(const Command& command) {
  const std::string name = command.Text("owner", "");
  if (name.empty()) throw std::invalid_argument("add needs owner=NAME: " + command.line);
  const uint64_t owner = OwnerOf(name);
  const Region region{ParseNumber(command.Word(1)), owner, command.Number("bytes", 0)};
  const std::string tenant = command.Text("tenant", name);
  command.CheckAllUsed();
  policy_.SetOwner(owner, owner, base::NumberOfName(tenant));
  regions_[region.id] = region;
  policy_.Added(region);
}

std::string SwapCommands::Runs(const Command& command) {
  NextLaunches next;
  next.count = static_cast<uint32_t>(command.Number("launches", 0));
  const std::string kernel = command.Text("kernel", "");
  if (!kernel.empty()) next.kernels[0] = base::NumberOfName(kernel);
  const uint64_t away = command.Number("away", 0);
  command.CheckAllUsed();
  const uint64_t owner = OwnerOf(command.Word(1));
  policy_.Accessed(owner);
  return "stays " + FormatTime(policy_.Runs(owner, away, next)) + "\n";
}

std::string SwapCommands::Choose(const Command& command) {
  const uint64_t room = command.Number("room", UINT64_MAX);
  const auto movable = Among(command.Text("movable", ""));
  command.CheckAllUsed();
  return Text(policy_.Victims(ParseNumber(command.Word(1)), room, movable));
}

std::vector<Region> SwapCommands::Among(const std::string& list) const {
  std::vector<Region> among;
  const std::string ids = "," + list + ",";
  for (const auto& [id, region] : regions_) {
    const bool named = ids.find("," + std::to_string(id) + ",") != std::string::npos;
    if (list.empty() || named) among.push_back(region);
  }
  return among;
}

std::string SwapCommands::Text(std::span<const Region> regions) {
  std::string text;
  for (const Region& region : regions) {
    text += std::to_string(region.id) + " of " + static_cast<char>(region.owner) + "\n";
  }
  return text.empty() ? "nobody\n" : text;
}

std::string SwapCommands::Run(const Command& command) {
  const std::string& verb = command.Word(0);
  if (verb == "victims") return Choose(command);
  if (verb == "runs") return Runs(command);
  if (verb == "add") {
    Add(command);
  } else if (verb == "use") {
    policy_.Accessed(OwnerOf(command.Word(1)));
  } else if (verb == "remove") {
    policy_.Removed(ParseNumber(command.Word(1)));
    regions_.erase(ParseNumber(command.Word(1)));
  } else if (verb == "prefetch") {
    std::vector<Region> away;
    for (size_t i = 1; i < command.words.size(); ++i) {
      away.push_back(regions_.at(ParseNumber(command.Word(i))));
    }
    return Text(policy_.Prefetch(away));
  } else if (verb == "at") {
    now_ = std::chrono::nanoseconds(scheduler::testing::ParseTime(command.Word(1))).count();
  } else if (verb == "set") {
    policy::SetInMap(command, program_.get());
  } else {
    throw std::invalid_argument("there is no command '" + verb + "'");
  }
  return "";
}

}  // namespace longwire::keeper
