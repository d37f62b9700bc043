#include "client-shim/connect/several_servers.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "wire/client_settings.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

// By which people find a program's sessions at several servers. Without random bytes it has none.
std::string NewProgramId() {
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string text;
  for (unsigned char byte : bytes) {
    for (int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

void MakeOneProgram(std::vector<Options>* servers) {
  const std::string id = servers->size() > 1 ? NewProgramId() : "";
  for (Options& one : *servers) {
    one.server_count = static_cast<int>(servers->size());
    one.program_id = id;
  }
}

}  // namespace

std::vector<Options> ServersOf(const Options& options, std::string* sentence) {
  if (!options.across) return {options};
  std::vector<Options> servers;
  std::istringstream list(options.server);
  for (std::string name; std::getline(list, name, ',');) {
    name = wire::Trim(name);
    if (name.empty()) continue;
    if (name.starts_with("unix:")) {
      *sentence = "a program has devices of several servers only over a network: name " + name +
                  " as HOST:PORT in LONGWIRE_SERVER, or unset LONGWIRE_ACROSS";
      return {};
    }
    Options one = options;
    one.server = name;
    one.server_number = static_cast<int>(servers.size());
    servers.push_back(std::move(one));
  }
  if (servers.size() > wire::kMaxServers) {
    *sentence = "a program has devices of at most " + std::to_string(wire::kMaxServers) +
                " servers, and LONGWIRE_SERVER names " + std::to_string(servers.size());
    return {};
  }
  MakeOneProgram(&servers);
  return servers;
}

std::vector<Options> ServersAt(const Options& options, const std::vector<wire::Place>& places) {
  std::vector<Options> servers;
  for (const wire::Place& place : places) {
    Options& one = servers.emplace_back(options);
    one.server = place.address;
    one.server_number = static_cast<int>(servers.size()) - 1;
    one.place = place.Text();
    one.devices = std::to_string(place.devices);
    one.wait = std::chrono::seconds(0);
  }
  MakeOneProgram(&servers);
  return servers;
}

int DomainAt(int server, int domain) { return domain + (server << 8); }

void MakeUnlike(std::vector<Uuid>* taken, Uuid* uuid) {
  while (std::ranges::count(*taken, *uuid) != 0) ++uuid->back();
  taken->push_back(*uuid);
}

}  // namespace longwire::shim
