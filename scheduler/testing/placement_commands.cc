#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "scheduler/testing/commands.h"

namespace longwire::scheduler::testing {

// device ID total=80GiB [free=80GiB] [sessions=0] [busy=40]
// place POLICY [devices=1] [memory=0] [times=1] [busy=5]
//   Placed sessions take the memory, and make their devices busier by `busy` percent.
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
  } else {
    devices_.clear();  // servers
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

}  // namespace longwire::scheduler::testing
