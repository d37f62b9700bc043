// The command line of longwired, and the configuration that results from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "server/config/config.h"

namespace longwire::daemon {

using base::Refusal;

struct CommandLine {
  // An option that sets a key of the file.
  struct Key {
    std::string option;  // "--listen"
    std::string key;     // "listen"
    std::string value;
    std::string renamed;  // the option's present name, if `option` is its former one
  };
  std::string config_file;  // absolute; empty: config::kSystemFile, if it is there
  std::vector<Key> keys;
  bool as_starter = false;
  std::string warden_settings;  // a file to write
  bool reload = false;
};

// nullopt with a refusal.
std::optional<CommandLine> ParseCommandLine(int count, char** arguments, Refusal* refusal);

// The file, then the command line, which wins, then the defaults; checked as a whole.
config::Draft Configure(const CommandLine& command_line, config::Problems* problems,
                        const std::string& system_file = config::kSystemFile);

}  // namespace longwire::daemon
