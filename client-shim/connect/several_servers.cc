#include "client-shim/connect/several_servers.h"

#include <algorithm>
#include <sstream>

#include "wire/client_settings.h"
#include "wire/limits.h"

namespace longwire::shim {

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
  return servers;
}

int DomainAt(int server, int domain) { return domain + (server << 8); }

void MakeUnlike(std::vector<Uuid>* taken, Uuid* uuid) {
  while (std::ranges::count(*taken, *uuid) != 0) ++uuid->back();
  taken->push_back(*uuid);
}

}  // namespace longwire::shim
