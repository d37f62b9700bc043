#include "server/daemon/settings/options.h"

#include <unistd.h>

#include <filesystem>

#include "server/daemon/settings/paths.h"

namespace longwire::daemon {
namespace {

constexpr const char* kHelp =
    R"(longwired: lends this host's CUDA devices to programs on other hosts.

  longwired [options]

  --config FILE        settings in YAML (default /etc/longwire/longwired.yaml, if it is there);
                       options given here win over it
  --listen HOST:PORT   where links connect (default 127.0.0.1:7411); may be given several times
  --insecure-listen-anywhere
                       listen beyond this host although connections are neither encrypted nor
                       asked who they are
  --local-socket PATH|none
                       unix socket for programs of this host (LONGWIRE_SERVER=unix:PATH);
                       default $LONGWIRE_RUNTIME_DIR/door, /run/longwire/door for root
  --driver auto|software|PATH
                       the driver library that serves the devices (default auto: NVIDIA's, else the
                       software device)
  --warden PATH        socket of longwire-warden, which is started when none answers there
  --warm-workers N     workers started ahead of need (default 1)
  --log-level LEVEL    error, warning, info or debug (default info)
  --reload             make the longwired that runs read its configuration again, and fail with the
                       reasons if it refuses
  --warden-settings FILE
                       write what longwire-warden has to know of the configuration, for its option
                       --settings, and end; for service managers, which start the two apart
  --as-starter         become longwire-starter, with what it has to know of the configuration
  --help, --version
)";

enum Option { kConfig = 256, kAsStarter, kWardenSettings, kReload, kFirstKey };

// Options that stand for a key of the file; those without an argument say true.
struct KeyOption {
  const char* option;
  const char* key;
  int argument = required_argument;
  const char* renamed = nullptr;  // the option that this is the former name of
};
constexpr KeyOption kKeyOptions[] = {
    {"listen", "listen"},
    {"insecure-listen-anywhere", "insecure_listen_anywhere", no_argument},
    {"local-socket", "local_socket"},
    {"door", "local_socket", required_argument, "local-socket"},
    {"driver", "driver"},
    {"warden", "warden"},
    {"warm-workers", "warm_workers"},
    {"log-level", "log_level"},
};

std::vector<option> AllOptions() {
  std::vector<option> options = {{"config", required_argument, nullptr, kConfig},
                                 {"as-starter", no_argument, nullptr, kAsStarter},
                                 {"warden-settings", required_argument, nullptr, kWardenSettings},
                                 {"reload", no_argument, nullptr, kReload},
                                 {"help", no_argument, nullptr, base::kHelpCode},
                                 {"version", no_argument, nullptr, base::kVersionCode}};
  int code = kFirstKey;
  for (const KeyOption& key : kKeyOptions) {
    options.push_back({key.option, key.argument, nullptr, code++});
  }
  options.push_back({nullptr, 0, nullptr, 0});
  return options;
}

bool Collect(int count, char** arguments, CommandLine* given, Refusal* refusal) {
  std::vector<option> options = AllOptions();
  auto apply = [&](int code, const std::string& told) -> std::string {
    if (code == kConfig) {
      // Reloading finds the same file, wherever the daemon may be then.
      given->config_file = std::filesystem::absolute(told).string();
    } else if (code == kReload) {
      given->reload = true;
    } else if (code == kAsStarter) {
      given->as_starter = true;
    } else if (code == kWardenSettings) {
      given->warden_settings = told;
    } else {
      const KeyOption& key = kKeyOptions[code - kFirstKey];
      const std::string value = key.argument == no_argument ? "true" : told;
      const std::string renamed = key.renamed == nullptr ? "" : std::string("--") + key.renamed;
      given->keys.push_back({std::string("--") + key.option, key.key, value, renamed});
    }
    return {};
  };
  const base::Program program{"longwired", LONGWIRE_VERSION, kHelp, options.data()};
  return base::ReadOptions(program, count, arguments, apply, refusal);
}

// Warns of an option that is given by its former name; with both names it is a problem.
void CheckName(const CommandLine::Key& given, const CommandLine& command_line, config::Draft* draft,
               config::Problems* problems) {
  if (given.renamed.empty()) return;
  for (const CommandLine::Key& other : command_line.keys) {
    if (other.option != given.renamed) continue;
    problems->Add({given.option, 0, 0}, "is the former name of " + given.renamed +
                                            ", which is given too; expected one of the two");
    return;
  }
  draft->warnings.push_back(given.option + " is the former name of " + given.renamed +
                            ": use that option");
}

}  // namespace

std::optional<CommandLine> ParseCommandLine(int count, char** arguments, Refusal* refusal) {
  CommandLine command_line;
  if (!Collect(count, arguments, &command_line, refusal)) return std::nullopt;
  return command_line;
}

config::Draft Configure(const CommandLine& command_line, config::Problems* problems,
                        const std::string& system_file) {
  config::Draft draft;
  if (!command_line.config_file.empty()) {
    config::ReadFile(command_line.config_file, &draft, problems);
  } else if (access(system_file.c_str(), F_OK) == 0) {
    config::ReadFile(system_file, &draft, problems);
  }
  for (const CommandLine::Key& given : command_line.keys) {
    CheckName(given, command_line, &draft, problems);
    config::SetKey(given.key, given.value, {given.option, 0, 0}, &draft, problems);
  }
  config::FillDefaults(RuntimeDirectory(), &draft.config, CacheDirectory(), StateDirectory());
  config::Check(draft, problems);
  return draft;
}

}  // namespace longwire::daemon
