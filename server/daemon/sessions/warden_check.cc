#include "server/daemon/sessions/warden_check.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "wire/number.h"
#include "wire/socket.h"

namespace longwire::daemon {
namespace {

// As WardenEnvironment tells a warden that is started now.
uint64_t DevicesWanted(const config::SoftwareDevice& device) {
  if (device.count() > 1) return device.count();
  const char* variable = getenv("LONGWIRE_SOFTWARE_DEVICES");
  if (variable == nullptr) return 1;
  return static_cast<uint64_t>(wire::ParseNumber(variable, 1, 64).value_or(1));
}

std::string Mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + "MiB"; }

std::string HowToEnd(const std::string& path) {
  auto peer = wire::PeerCredentials(wire::ConnectLocal(path).get());
  std::string process = peer ? "process " + std::to_string(peer->pid) : "the one at " + path;
  return "longwire-warden lives on from an earlier start and keeps what it has. To change that, "
         "stop "
         "longwired, end the warden (" +
         process + ", with its sessions), and start again";
}

// The devices that are named but not served, or served but not named: a session would be where its
// administrator does not want it, beside what else uses that device.
std::string OtherDevices(const config::Config& config, const warden::Stats& stats) {
  std::set<int64_t> named, served;
  for (const config::Device& device : config.devices()) named.insert(device.device());
  for (const warden::DeviceStats& device : stats.devices) served.insert(device.device);
  if (named.empty() || named == served) return {};
  auto list = [](const std::set<int64_t>& devices) {
    std::string text;
    for (int64_t device : devices) text += (text.empty() ? "" : ", ") + std::to_string(device);
    return text;
  };
  return "devices names " + list(named) + ", but " + list(served) + " are served";
}

}  // namespace

std::string DifferenceOf(const config::Config& config, const warden::Stats& stats) {
  const std::string others = OtherDevices(config, stats);
  if (!others.empty()) return others + ": " + HowToEnd(config.warden());
  if (stats.driver.find("softgpu") == std::string::npos) return {};
  const config::SoftwareDevice& device = config.software_device();
  std::string what;
  uint64_t wanted = DevicesWanted(device);
  bool all = config.devices().empty();  // else as many are served as are named
  if (all && wanted != stats.devices.size()) {
    what = "software_device.count is " + std::to_string(wanted) + ", but " +
           std::to_string(stats.devices.size()) + " are served";
  }
  auto other = [&](const warden::DeviceStats& served) { return served.total != device.memory(); };
  auto found = std::find_if(stats.devices.begin(), stats.devices.end(), other);
  if (device.has_memory() && found != stats.devices.end() && found->total != 0) {
    what += (what.empty() ? "" : "; ") + std::string("software_device.memory is ") +
            Mebibytes(device.memory()) + ", but a device has " + Mebibytes(found->total);
  }
  return what.empty() ? what : what + ": " + HowToEnd(config.warden());
}

}  // namespace longwire::daemon
