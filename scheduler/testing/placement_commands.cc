#include <chrono>
#include <sstream>
#include <stdexcept>

#include "scheduler/testing/commands.h"

namespace longwire::scheduler::testing {

// device ID total=80GiB [free=80GiB] [sessions=0] [busy=40]
// place POLICY [devices=1] [memory=0] [times=1] [busy=5]
//   Placed sessions take the memory, and make their devices busier by `busy` percent.
// occupy SESSION device=0 memory=10GiB [room=10GiB] [moved=30s] [latency_critical] [stays]
// rebalance memory=40GiB [devices=1]
std::string PlacementCommands::Run(const Command& command) {
  std::string output;
  if (command.Word(0) == "device") {
    DeviceLoad device;
    device.id = static_cast<DeviceId>(ParseNumber(command.Word(1)));
    device.total_bytes = ParseBytes(command.Text("total", "80GiB"));
    device.free_bytes = ParseBytes(command.Text("free", command.Text("total", "80GiB")));
    device.sessions = static_cast<uint32_t>(command.Number("sessions", 0));
    device.busy = static_cast<double>(command.Number("busy", 0)) / 100;
    devices_[device.id] = device;
  } else if (command.Word(0) == "place") {
    output = Place(command);
  } else if (command.Word(0) == "occupy") {
    Occupy(command);
  } else if (command.Word(0) == "rebalance") {
    output = Rebalance(command);
  } else {
    devices_.clear();  // servers
    occupants_.clear();
  }
  command.CheckAllUsed();
  return output;
}

std::string PlacementCommands::Place(const Command& command) {
  const auto placement = MakePlacement(command.Word(1));
  if (placement == nullptr) throw std::invalid_argument("there is no such placement");
  PlacementRequest request;
  request.devices = static_cast<uint32_t>(command.Number("devices", 1));
  request.bytes = ParseBytes(command.Text("memory", "0"));
  const double busier = static_cast<double>(command.Number("busy", 0)) / 100;
  std::ostringstream output;
  for (uint64_t left = command.Number("times", 1); left > 0; --left) {
    std::vector<DeviceLoad> loads;
    for (const auto& [id, load] : devices_) loads.push_back(load);
    const PlacementAnswer answer = placement->Place(loads, request);
    if (!answer.refusal.empty()) {
      output << answer.refusal << "\n";
      break;
    }
    const char* separator = "";
    for (DeviceId id : answer.devices) {
      DeviceLoad& load = devices_.at(id);
      load.free_bytes -= request.bytes;
      load.sessions += 1;
      load.busy += busier;
      output << separator << id;
      separator = ",";
    }
    output << (left > 1 ? " " : "\n");
  }
  return output.str();
}

void PlacementCommands::Occupy(const Command& command) {
  Occupant& one = occupants_.emplace_back();
  one.session = ParseNumber(command.Word(1));
  one.device = static_cast<DeviceId>(command.Number("device", 0));
  one.bytes = ParseBytes(command.Text("memory", "0"));
  one.room = ParseBytes(command.Text("room", command.Text("memory", "0")));
  one.best_effort = !command.Has("latency_critical");
  one.stays = command.Has("stays");
  const std::string moved = command.Text("moved", "");
  if (!moved.empty()) {
    one.moved = std::chrono::duration_cast<std::chrono::seconds>(ParseTime(moved));
  }
  devices_.at(one.device).free_bytes -= one.room;
  devices_.at(one.device).sessions += 1;
}

std::string PlacementCommands::Rebalance(const Command& command) {
  PlacementRequest request;
  request.devices = static_cast<uint32_t>(command.Number("devices", 1));
  request.bytes = ParseBytes(command.Text("memory", "0"));
  std::vector<DeviceLoad> loads;
  for (const auto& [id, load] : devices_) loads.push_back(load);
  const RebalancePlan plan = PlanRebalance(loads, occupants_, request);
  if (plan.devices.empty()) return "no plan\n";
  std::ostringstream output;
  for (const SessionMove& move : plan.moves) output << move.session << " to " << move.to << ", ";
  output << "room on";
  for (DeviceId device : plan.devices) output << " " << device;
  output << "\n";
  return output.str();
}

}  // namespace longwire::scheduler::testing
