#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "scheduler/simulate/pool.h"
#include "scheduler/testing/commands.h"

namespace longwire::scheduler::testing {

// pool
// host NAME [devices=1] [memory=80GiB] [sessions=0] [busy=40] [label=gpu:h200] [runs=PROGRAM]
// [images=a:b] ask POLICY [devices=1] [memory=0] [label=gpu:h200] [program=p] [images=a:b]
// [times=1]
//   Each one's host; those that are placed take their devices.
// queue POLICY hosts=N devices=N requests=N [rate=10] [seed=1]
//   For each second the numbers of those that are placed then.
std::string PoolCommands::Run(const Command& command) {
  std::string output;
  if (command.Word(0) == "host") {
    AddHost(command);
  } else if (command.Word(0) == "ask") {
    output = Ask(command);
  } else if (command.Word(0) == "queue") {
    output = Queue(command);
  } else {
    hosts_.clear();  // pool
  }
  command.CheckAllUsed();
  return output;
}

namespace {

void ReadLabel(const Command& command, pool::Labels* labels) {
  const std::string label = command.Text("label", "");
  const size_t colon = label.find(':');
  if (!label.empty()) (*labels)[label.substr(0, colon)] = label.substr(colon + 1);
}

std::vector<std::string> Images(const Command& command) {
  std::vector<std::string> images;
  std::istringstream words(command.Text("images", ""));
  for (std::string word; std::getline(words, word, ':');) images.push_back(word);
  return images;
}

}  // namespace

void PoolCommands::AddHost(const Command& command) {
  pool::HostState& host = hosts_.emplace_back();
  host.name = command.Word(1);
  host.sessions = static_cast<uint32_t>(command.Number("sessions", 0));
  host.sessions_limit = 64;
  ReadLabel(command, &host.labels);
  if (const std::string runs = command.Text("runs", ""); !runs.empty()) {
    host.programs.insert(pool::KindOf("t", runs));
  }
  for (const std::string& image : Images(command)) host.images.insert(image);
  const uint64_t bytes = ParseBytes(command.Text("memory", "80GiB"));
  const double busy = static_cast<double>(command.Number("busy", 0)) / 100;
  for (uint64_t i = command.Number("devices", 1); i > 0; --i) {
    pool::DeviceState& device = host.devices.emplace_back();
    device.ordinal = static_cast<int32_t>(host.devices.size() - 1);
    device.total = bytes;
    device.busy = busy;
  }
}

std::string PoolCommands::Ask(const Command& command) {
  pool::Planner planner(command.Word(1));
  pool::Wish wish;
  wish.tenant = "t";
  wish.devices = static_cast<uint32_t>(command.Number("devices", 1));
  wish.bytes = ParseBytes(command.Text("memory", "0"));
  wish.program = command.Text("program", "p");
  wish.images = Images(command);
  ReadLabel(command, &wish.labels);
  std::ostringstream output;
  for (uint64_t left = command.Number("times", 1); left > 0; --left) {
    const pool::Decision decision = planner.Plan(hosts_, {wish}, 1).at(0);
    if (decision.outcome != pool::Outcome::kPlaced) {
      output << decision.reason << "\n";
      break;
    }
    for (pool::HostState& host : hosts_) {
      if (host.name == decision.host) pool::Take(wish, decision.devices, &host);
    }
    output << decision.host;
    for (int32_t device : decision.devices) output << "." << device;
    output << (left > 1 ? " " : "\n");
  }
  return output.str();
}

std::string PoolCommands::Queue(const Command& command) {
  simulate::PoolOptions options;
  options.queue.policy = command.Word(1);
  options.hosts = static_cast<uint32_t>(command.Number("hosts", 4));
  options.devices = static_cast<uint32_t>(command.Number("devices", 4));
  options.programs = command.Number("requests", 1000);
  options.rate = static_cast<uint32_t>(command.Number("rate", 10));
  options.seed = command.Number("seed", 1);
  options.queue.patience = command.Number("patience", 60);
  options.queue.waiting_of_tenant = 1000;
  options.longest = 30;
  options.seconds = 100000;
  options.tenants = 5;
  // Only as long as there is something to do.
  options.until_done = true;
  const simulate::PoolResult result = simulate::SimulatePool(options);
  std::ostringstream output;
  uint64_t second = 0;
  for (const auto& placement : result.placements) {
    if (placement.second != second) output << (second == 0 ? "" : "\n") << placement.second << "s";
    second = placement.second;
    output << " " << placement.number << "@" << placement.host;
  }
  output << "\n"
         << result.placements.size() << " placed, " << result.refused << " refused, longest wait "
         << result.longest_wait << "s\n";
  return output.str();
}

}  // namespace longwire::scheduler::testing
