#include "server/warden/command_line.h"

#include <cstdlib>
#include <sstream>

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

// Empty if the option is valid, else what it expects.
std::string Apply(int code, const std::string& value, Options* options) {
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

}  // namespace

std::optional<Options> ParseCommandLine(int count, char** arguments, Refusal* refusal) {
  Options options;
  options.driver = "auto";
  auto apply = [&](int code, const std::string& value) {
    const std::string expected = Apply(code, value, &options);
    return expected.empty() ? "" : expected + ", found '" + value + "'";
  };
  const base::Program program{"longwire-warden", LONGWIRE_VERSION, kHelp, kOptions};
  if (!base::ReadOptions(program, count, arguments, apply, refusal)) return std::nullopt;
  if (!options.socket.empty()) return options;
  refusal->text = "longwire-warden: --socket is needed; see longwire-warden --help\n";
  return std::nullopt;
}

}  // namespace longwire::warden
