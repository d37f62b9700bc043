// What longwired is told: by a YAML file, by its command line, which wins.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "link/transport/address.h"
#include "link/transport/log.h"

namespace longwire::daemon {

struct Config {
  std::vector<transport::Address> listen;
  std::string door;             // unix socket for programs of this host, empty: none
  std::string driver = "auto";  // "auto", "software" or a path
  std::string warden;           // unix socket
  uint32_t warm_workers = 1;
  uint64_t software_device_memory = 0;  // bytes, 0: the software device's own default
  transport::LogLevel log_level = transport::LogLevel::kInfo;
  bool insecure_listen_anywhere = false;
  uint32_t max_sessions = 256;
  std::chrono::milliseconds resume_grace{1000};
};

// One key of the file.
struct ConfigKey {
  std::string_view name;
  std::string_view expected;  // for people: what the value has to be
  bool list;                  // a list of values is allowed too; each is applied
  // Takes the value over; false when it is not what `expected` says. *problem may say more.
  std::function<bool(std::string_view value, Config* config, std::string* problem)> apply;
};
const std::vector<ConfigKey>& ConfigKeys();

// Applies the YAML text of the file called `name`. False with "name:line:column: problem".
bool ApplyConfig(const std::string& name, const std::string& text, Config* config,
                 std::string* error);
// Reads the file and applies it.
bool LoadConfig(const std::string& path, Config* config, std::string* error);

// What only becomes clear when everything is known: a sentence, empty when all is well.
std::string CheckConfig(const Config& config);

}  // namespace longwire::daemon
