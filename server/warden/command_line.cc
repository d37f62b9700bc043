#include "server/warden/command_line.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "wire/number.h"

namespace longwire::warden {
namespace {

constexpr const char* kHelp =
    R"(longwire-warden: starts the processes that use the devices, and outlives the daemon.
longwired starts it by itself when none answers at its socket.

  longwire-warden --socket PATH [options]

  --socket PATH         where longwired connects (a unix socket)
  --driver auto|software|PATH
                        the driver library that serves the devices (default auto: NVIDIA's, else the
                        software device)
  --devices N[,N...]    the devices that are served, as the driver counts them (default: all)
  --warm-workers N      workers started ahead of need on each device (default 1)
  --warm-workers-of DEVICE=N[,DEVICE=N...]
                        another number on these devices
  --software-devices N  the number of devices that the software device emulates
  --compile-cache FOLDER
                        where the driver caches what it compiles from PTX, a folder for each tenant;
                        without it nothing is cached
  --walls separate|shared_uid
                        each worker is a user of its own, in namespaces of its own (the default), or
                        all are the warden's user, for NVIDIA's MPS
  --starter PATH        socket of longwire-starter; without it the warden starts one
  --worker-uid N        the first of the workers' users, if the warden runs as root
  --system-calls enforce|log|off
                        what becomes of system calls that no worker needs (default enforce)
  --worker-host-memory BYTES
                        host memory of a worker, where it has a control group
  --worker-processes N  threads of a worker
  --worker-addresses random|fixed
                        whether the driver's memory lies anywhere in a worker (the default), or at
                        the same addresses in each, so that sessions can move between NVIDIA devices
  --worker-cgroups own|FOLDER
                        make a control group for each worker, within the warden's own or in FOLDER
                        (of version 2), which nobody else may use for other things
  --settings FILE       options, one in each line, and variables, as longwired --warden-settings
                        writes them; those given here win
  --on-demand           end when nobody has needed it for a minute
  --help, --version

The exit status is 1 if the devices do not open or it cannot listen, 2 if it was called wrongly.
)";

// The limits of the daemon's configuration.
constexpr int kMaxDevice = 63;
constexpr int kMaxWarmWorkers = 64;
constexpr int kMaxSoftwareDevices = 64;

enum Option {
  kSocket = 256,
  kDriver,
  kDevices,
  kWarmWorkers,
  kWarmWorkersOf,
  kSoftwareDevices,
  kCompileCache,
  kWalls,
  kStarter,
  kWorkerUid,
  kSystemCalls,
  kWorkerHostMemory,
  kWorkerProcesses,
  kWorkerAddresses,
  kWorkerCgroups,
  kSettings,
  kOnDemand
};

constexpr option kOptions[] = {
    {"socket", required_argument, nullptr, kSocket},
    {"driver", required_argument, nullptr, kDriver},
    {"devices", required_argument, nullptr, kDevices},
    {"warm-workers", required_argument, nullptr, kWarmWorkers},
    {"warm-workers-of", required_argument, nullptr, kWarmWorkersOf},
    {"software-devices", required_argument, nullptr, kSoftwareDevices},
    {"compile-cache", required_argument, nullptr, kCompileCache},
    {"walls", required_argument, nullptr, kWalls},
    {"starter", required_argument, nullptr, kStarter},
    {"worker-uid", required_argument, nullptr, kWorkerUid},
    {"system-calls", required_argument, nullptr, kSystemCalls},
    {"worker-host-memory", required_argument, nullptr, kWorkerHostMemory},
    {"worker-processes", required_argument, nullptr, kWorkerProcesses},
    {"worker-addresses", required_argument, nullptr, kWorkerAddresses},
    {"worker-cgroups", required_argument, nullptr, kWorkerCgroups},
    {"settings", required_argument, nullptr, kSettings},
    {"on-demand", no_argument, nullptr, kOnDemand},
    {"help", no_argument, nullptr, base::kHelpCode},
    {"version", no_argument, nullptr, base::kVersionCode},
    {nullptr, 0, nullptr, 0},
};

bool ParseWarmWorkersOf(const std::string& list, std::map<int32_t, int>* workers_of) {
  std::istringstream parts(list);
  bool any = false;
  for (std::string part; std::getline(parts, part, ',');) {
    size_t equals = part.find('=');
    if (equals == std::string::npos) return false;
    auto device = wire::ParseNumber(part.substr(0, equals), 0, kMaxDevice);
    auto workers = wire::ParseNumber(part.substr(equals + 1), 0, kMaxWarmWorkers);
    if (!device || !workers) return false;
    (*workers_of)[static_cast<int32_t>(*device)] = static_cast<int>(*workers);
    any = true;
  }
  return any;
}

std::string Bounds(int least, int most) {
  return " from " + std::to_string(least) + " to " + std::to_string(most);
}

std::string ApplyWall(int code, const std::string& value, WallOptions* walls) {
  constexpr int64_t kMinMemory = int64_t{1} << 26, kMaxMemory = int64_t{1} << 50;
  constexpr int64_t kMinUid = 65536, kMaxUid = UINT32_MAX - int64_t{starter::kUsers};
  constexpr int64_t kMinProcesses = 64, kMaxProcesses = 1 << 20;
  if (code == kWalls) {
    walls->separate = value == "separate";
    return walls->separate || value == "shared_uid" ? "" : "--walls expects separate or shared_uid";
  }
  if (code == kStarter) walls->starter_socket = value;
  if (code == kWorkerCgroups) walls->cgroups = value;
  if (code == kWorkerUid) {
    auto first = wire::ParseNumber(value, kMinUid, kMaxUid);
    if (!first) return "--worker-uid expects a number from 65536 to 4290772991";
    walls->first_uid = static_cast<uint32_t>(*first);
  }
  if (code == kSystemCalls) {
    constexpr std::string_view kModes[] = {"off", "log", "enforce"};
    if (std::ranges::count(kModes, value) == 0) {
      return "--system-calls expects enforce, log or off";
    }
    walls->system_calls = value;
  }
  if (code == kWorkerHostMemory) {
    auto bytes = wire::ParseNumber(value, kMinMemory, kMaxMemory);
    if (!bytes) return "--worker-host-memory expects bytes, at least 67108864";
    walls->host_memory = static_cast<uint64_t>(*bytes);
  }
  if (code == kWorkerProcesses) {
    auto processes = wire::ParseNumber(value, kMinProcesses, kMaxProcesses);
    if (!processes) return "--worker-processes expects a number from 64 to 1048576";
    walls->processes = static_cast<int>(*processes);
  }
  if (code == kWorkerAddresses) {
    const bool known = value == "fixed" || value == "random";
    if (!known) return "--worker-addresses expects random or fixed";
    walls->addresses = value;
  }
  return {};
}

// Empty if the option is valid, else what it expects.
std::string Apply(int code, const std::string& value, Options* options) {
  if (code >= kWalls && code <= kWorkerCgroups) return ApplyWall(code, value, &options->walls);
  switch (code) {
    case kSocket:
      options->socket = value;
      return {};
    case kDriver:
      options->driver = value;
      return {};
    case kDevices: {
      auto devices = wire::ParseNumbers(value, 0, kMaxDevice);
      if (devices) options->devices = *devices;
      if (devices) return {};
      return "--devices expects numbers" + Bounds(0, kMaxDevice) + " with commas between";
    }
    case kWarmWorkers: {
      auto number = wire::ParseNumber(value, 0, kMaxWarmWorkers);
      if (number) options->warm_workers = static_cast<int>(*number);
      if (number) return {};
      return "--warm-workers expects a number" + Bounds(0, kMaxWarmWorkers);
    }
    case kWarmWorkersOf:
      if (ParseWarmWorkersOf(value, &options->warm_workers_of)) return {};
      return "--warm-workers-of expects DEVICE=N with commas between, such as 0=2,1=0";
    case kSoftwareDevices:
      if (!wire::ParseNumber(value, 1, kMaxSoftwareDevices)) {
        return "--software-devices expects a number" + Bounds(1, kMaxSoftwareDevices);
      }
      setenv("LONGWIRE_SOFTWARE_DEVICES", value.c_str(), 1);
      return {};
    case kCompileCache:
      options->compile_cache = value;
      return {};
    default:
      options->on_demand = true;
      return {};
  }
}

// The words of the command line with those of the file that --settings names before them. False if
// that cannot be read.
bool TakeSettings(std::vector<std::string>* words) {
  auto named = std::ranges::find(*words, "--settings");
  if (named == words->end() || named + 1 == words->end()) return true;
  std::ifstream file(*(named + 1));
  if (!file) return false;
  std::vector<std::string> more;
  for (std::string line; std::getline(file, line);) {
    size_t end = line.find_first_of(" =");
    if (end == std::string::npos) continue;
    std::string name = line.substr(0, end), value = line.substr(end + 1);
    if (name.starts_with("--")) {
      more.insert(more.end(), {name, value});
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  words->erase(named, named + 2);
  words->insert(words->begin() + 1, more.begin(), more.end());
  return true;
}

}  // namespace

std::optional<Options> ParseCommandLine(int given, char** words, Refusal* refusal) {
  Options options;
  options.driver = "auto";
  options.walls.separate = true;
  std::vector<std::string> all(words, words + given);
  if (!TakeSettings(&all)) {
    refusal->text = "longwire-warden: cannot read the file of --settings\n";
    return std::nullopt;
  }
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  const int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  auto apply = [&](int code, const std::string& value) {
    const std::string expected = Apply(code, value, &options);
    return expected.empty() ? "" : expected + ", found '" + value + "'";
  };
  const base::Program program{"longwire-warden", LONGWIRE_VERSION, kHelp, kOptions};
  if (!base::ReadOptions(program, count, arguments.data(), apply, refusal)) return std::nullopt;
  if (!options.socket.empty()) return options;
  refusal->text = "longwire-warden: --socket is needed; see longwire-warden --help\n";
  return std::nullopt;
}

}  // namespace longwire::warden
