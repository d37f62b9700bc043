#include "server/daemon/options.h"

#include <getopt.h>

#include <vector>

#include "server/daemon/paths.h"
#include "wire/limits.h"

namespace longwire::daemon {
namespace {

constexpr const char* kHelp =
    R"(longwired: lends this host's CUDA devices to programs on other hosts.

  longwired [options]

  --config FILE        settings in YAML; options given here win over it
  --listen HOST:PORT   where links connect (default 127.0.0.1:7411); may be given several times
  --insecure-listen-anywhere
                       listen beyond this host although connections are neither encrypted nor
                       asked who they are
  --door PATH|none     unix socket for programs of this host (LONGWIRE_SERVER=unix:PATH);
                       default $LONGWIRE_RUNTIME_DIR/door, /run/longwire/door for root
  --driver auto|software|PATH
                       the driver library that serves the devices (default auto: NVIDIA's, else the
                       software device)
  --warden PATH        socket of longwire-warden, which is started when nobody answers there
  --warm-workers N     workers started ahead of need (default 1)
  --log-level LEVEL    error, warning, info or debug (default info)
  --help, --version
)";

enum Option { kConfig = 256, kInsecure, kHelpText, kVersion, kFirstKey };

// Options that stand for a key of the file.
struct KeyOption {
  const char* option;
  const char* key;
};
constexpr KeyOption kKeyOptions[] = {
    {"listen", "listen"},
    {"door", "door"},
    {"driver", "driver"},
    {"warden", "warden"},
    {"warm-workers", "warm_workers"},
    {"log-level", "log_level"},
};

std::vector<option> AllOptions() {
  std::vector<option> options = {{"config", required_argument, nullptr, kConfig},
                                 {"insecure-listen-anywhere", no_argument, nullptr, kInsecure},
                                 {"help", no_argument, nullptr, kHelpText},
                                 {"version", no_argument, nullptr, kVersion}};
  int code = kFirstKey;
  for (const KeyOption& key : kKeyOptions) {
    options.push_back({key.option, required_argument, nullptr, code++});
  }
  options.push_back({nullptr, 0, nullptr, 0});
  return options;
}

bool ApplyKey(const KeyOption& name, const char* value, Config* config, std::string* problem) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.name != name.key) continue;
    if (key.apply(value, config, problem)) return true;
    *problem = std::string("--") + name.option + ": expected " + std::string(key.expected) +
               ", found '" + value + "'" + (problem->empty() ? "" : " (" + *problem + ")");
    return false;
  }
  return false;
}

struct Given {
  std::string config_file;
  bool insecure = false;
  std::vector<std::pair<const KeyOption*, std::string>> keys;
};

bool Collect(int count, char** arguments, Given* given, Refusal* refusal) {
  std::vector<option> options = AllOptions();
  optind = 1;
  for (int code = 0; (code = getopt_long(count, arguments, "", options.data(), nullptr)) != -1;) {
    if (code == kConfig) {
      given->config_file = optarg;
    } else if (code == kInsecure) {
      given->insecure = true;
    } else if (code >= kFirstKey) {
      given->keys.emplace_back(&kKeyOptions[code - kFirstKey], optarg);
    } else {
      if (code == kHelpText) *refusal = {kHelp, 0};
      if (code == kVersion) *refusal = {"longwired " LONGWIRE_VERSION "\n", 0};
      if (code == '?') refusal->text = "see longwired --help\n";
      return false;
    }
  }
  if (optind == count) return true;
  refusal->text = std::string("longwired: unexpected argument ") + arguments[optind] + "\n";
  return false;
}

}  // namespace

std::optional<Config> ParseOptions(int count, char** arguments, Refusal* refusal) {
  Given given;
  if (!Collect(count, arguments, &given, refusal)) return std::nullopt;
  Config config;
  config.door = RuntimeDirectory() + "/door";
  config.warden = RuntimeDirectory() + "/warden";
  std::string problem;
  if (!given.config_file.empty() && !LoadConfig(given.config_file, &config, &problem)) {
    refusal->text = problem + "\n";
    return std::nullopt;
  }
  bool listen_given = false;
  for (const auto& [key, value] : given.keys) {
    if (std::string_view(key->key) == "listen" && !listen_given) {
      config.listen.clear();
      listen_given = true;
    }
    if (ApplyKey(*key, value.c_str(), &config, &problem)) continue;
    refusal->text = "longwired: " + problem + "\n";
    return std::nullopt;
  }
  config.insecure_listen_anywhere |= given.insecure;
  if (config.listen.empty()) config.listen.push_back({"127.0.0.1", wire::kDefaultPort});
  problem = CheckConfig(config);
  if (problem.empty()) return config;
  refusal->text = problem + "\n";
  return std::nullopt;
}

}  // namespace longwire::daemon
