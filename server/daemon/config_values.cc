// The keys of the configuration file and what each accepts.
#include <charconv>
#include <limits>

#include "server/daemon/config.h"

namespace longwire::daemon {
namespace {

bool ParseUnsigned(std::string_view text, uint64_t limit, uint64_t* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value <= limit;
}

// "4096", "512MiB", "8 GiB".
bool ParseBytes(std::string_view text, uint64_t* bytes) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  int shift = 0;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  if (shift == 0 && !unit.empty()) return false;
  uint64_t limit = std::numeric_limits<uint64_t>::max() >> shift;
  if (!ParseUnsigned(text.substr(0, digits), limit, bytes)) return false;
  *bytes <<= shift;
  return true;
}

bool ParseFlag(std::string_view text, bool* value) {
  *value = text == "true";
  return text == "true" || text == "false";
}

template <class Number>
auto NumberInto(Number Config::*field, uint64_t least, uint64_t most) {
  return [=](std::string_view text, Config* config, std::string*) {
    uint64_t value = 0;
    if (!ParseUnsigned(text, most, &value) || value < least) return false;
    config->*field = static_cast<Number>(value);
    return true;
  };
}

auto PathInto(std::string Config::*field) {
  return [=](std::string_view text, Config* config, std::string*) {
    if (text.empty() || text.front() != '/') return false;
    config->*field = text;
    return true;
  };
}

bool ApplyListen(std::string_view text, Config* config, std::string* problem) {
  auto address = transport::ParseAddress(text, problem);
  if (address) config->listen.push_back(std::move(*address));
  return address.has_value();
}

bool ApplyDoor(std::string_view text, Config* config, std::string* problem) {
  if (text == "none") {
    config->door.clear();
    return true;
  }
  return PathInto(&Config::door)(text, config, problem);
}

bool ApplyDriver(std::string_view text, Config* config, std::string* problem) {
  if (text == "auto" || text == "software") {
    config->driver = text;
    return true;
  }
  return PathInto(&Config::driver)(text, config, problem);
}

bool ApplyMemory(std::string_view text, Config* config, std::string*) {
  return ParseBytes(text, &config->software_device_memory);
}

bool ApplyLogLevel(std::string_view text, Config* config, std::string*) {
  return transport::ParseLogLevel(text, &config->log_level);
}

bool ApplyInsecure(std::string_view text, Config* config, std::string*) {
  return ParseFlag(text, &config->insecure_listen_anywhere);
}

bool ApplyGrace(std::string_view text, Config* config, std::string*) {
  uint64_t seconds = 0;
  if (!ParseUnsigned(text, 3600, &seconds)) return false;
  config->resume_grace = std::chrono::seconds(seconds);
  return true;
}

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() {
  static const std::vector<ConfigKey> keys = {
      {"door", "an absolute path or none", false, ApplyDoor},
      {"driver", "auto, software or the absolute path of a driver library", false, ApplyDriver},
      {"insecure_listen_anywhere", "true or false", false, ApplyInsecure},
      {"listen", "host:port or a list of them", true, ApplyListen},
      {"log_level", "error, warning, info or debug", false, ApplyLogLevel},
      {"max_sessions", "a number from 1 to 4096", false,
       NumberInto(&Config::max_sessions, 1, 4096)},
      {"resume_grace_seconds", "a number from 0 to 3600", false, ApplyGrace},
      {"software_device_memory", "a number of bytes, KiB, MiB or GiB", false, ApplyMemory},
      {"warden", "an absolute path", false, PathInto(&Config::warden)},
      {"warm_workers", "a number from 0 to 64", false, NumberInto(&Config::warm_workers, 0, 64)},
  };
  return keys;
}

std::string CheckConfig(const Config& config) {
  for (const transport::Address& address : config.listen) {
    if (config.insecure_listen_anywhere || transport::IsLoopback(address)) continue;
    return "longwired does not listen at " + address.Text() +
           ": its connections are not encrypted and nobody is asked who he is, so anybody who "
           "reaches the port could use the devices. Listen at 127.0.0.1 and tunnel, or give "
           "--insecure-listen-anywhere if that network may do so";
  }
  return {};
}

}  // namespace longwire::daemon
