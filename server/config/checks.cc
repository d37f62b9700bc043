// What only becomes clear when everything is known.
#include <set>

#include "server/config/config.h"
#include "server/config/rule_checks.h"
#include "server/config/schema.h"
#include "server/config/text.h"
#include "server/config/units.h"
#include "server/rules/rule.h"
#include "wire/guards.h"

namespace longwire::config {
namespace {

std::string Element(const std::string& list, int index) {
  return list + "[" + std::to_string(index) + "]";
}

bool IsLabel(const std::string& text) {
  constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const size_t sign = text.find('=');
  return sign != 0 && sign != std::string::npos && sign + 1 != text.size() &&
         text.find_first_not_of(kLetters) == sign &&
         text.find_first_not_of(kLetters, sign + 1) == std::string::npos;
}

class Checker {
 public:
  Checker(const Draft& draft, Problems* problems) : draft_(draft), problems_(problems) {}

  void CheckAll() {
    CheckListen();
    CheckMetrics();
    CheckMoves();
    CheckSockets();
    CheckDevices();
    CheckTenants();
    CheckScheduler();
    CheckPolicies();
    CheckWalls();
    CheckPool();
    CheckRules(config().rules(), "rules");
    for (int i = 0; i < config().tenants_size(); ++i) {
      CheckRules(config().tenants(i).rules(), Element("tenants", i) + ".rules");
    }
  }

 private:
  const Config& config() const { return draft_.config; }

  // Where the value stands, or the nearest thing around it; a default stands nowhere.
  Place PlaceOf(std::string path) const {
    while (true) {
      auto found = draft_.places.find(path);
      if (found != draft_.places.end()) return found->second;
      size_t end = path.find_last_of(".[");
      if (end == std::string::npos) return {"the defaults", 0, 0};
      path.resize(end);
    }
  }

  void Add(const std::string& path, const std::string& sentence) {
    problems_->Add(PlaceOf(path), sentence);
  }

  // True when the word came before; else it is remembered as standing at `path`.
  bool CameBefore(std::map<std::string, std::string>* seen, const std::string& word,
                  const std::string& path, std::string* first) {
    auto [found, is_new] = seen->emplace(word, path);
    if (!is_new) *first = PlaceOf(found->second).Text();
    return !is_new;
  }

  void CheckListen() {
    std::map<std::string, std::string> seen;
    std::string first;
    for (int i = 0; i < config().listen_size(); ++i) {
      const std::string path = Element("listen", i);
      std::string problem;
      auto address = transport::ParseAddress(config().listen(i), &problem);
      if (!address) continue;
      if (address->port != 0 && CameBefore(&seen, address->Text(), path, &first)) {
        Add(path, "listen: " + address->Text() + " is in the list already (" + first + ")");
      }
      if (config().has_tls() || config().insecure_listen_anywhere()) continue;
      if (transport::IsLoopback(*address)) continue;
      Add(path, "listen: expected an address of this host alone (127.0.0.1) or tls:, found " +
                    address->Text() +
                    " without tls: nothing would be encrypted and anybody who reaches the port "
                    "could use the devices; if that network may do so, say "
                    "insecure_listen_anywhere: true (--insecure-listen-anywhere)");
    }
  }

  void CheckMetrics() {
    if (config().has_metrics()) CheckOwnPort("metrics", config().metrics());
    if (!config().has_metrics_tls()) return;
    CheckOwnPort("metrics_tls", config().metrics_tls());
    if (config().has_tls()) return;
    Add("metrics_tls",
        "metrics_tls: expected tls: in the configuration, too, whose certificate it shows, found "
        "none");
  }

  // Whoever may hand sessions over says whose they are.
  void CheckMoves() {
    for (int i = 0; i < config().moves_from_size(); ++i) {
      if (config().moves_from(i) == config::kMovesOfPool && !config().has_pool()) {
        Add(Element("moves_from", i),
            "moves_from: expected the name of a server, found pool, which is for servers in a pool "
            "(pool:) alone");
      }
      if (config().moves_from(i) != "any" || !config().has_tls()) continue;
      Add(Element("moves_from", i),
          "moves_from: expected the common name of a server's certificate, found any, which is for "
          "servers without tls: alone");
    }
  }

  void CheckOwnPort(const std::string& key, const std::string& where) {
    std::string problem;
    auto address = transport::ParseAddress(where, &problem);
    if (!address) return;
    for (const std::string& listen : config().listen()) {
      if (listen != address->Text() || address->port == 0) continue;
      Add(key, key + ": expected a port of its own, found " + listen + ", where links connect");
    }
  }

  void CheckSockets() {
    const std::string& socket = config().local_socket();
    if (socket != config().warden()) return;
    Add(draft_.places.count("warden") != 0 ? "warden" : "local_socket",
        "local_socket and warden: expected two sockets, found " + Quoted(socket) + " for both");
  }

  void CheckDevices() {
    std::map<std::string, std::string> seen;
    std::string first;
    for (int i = 0; i < config().devices_size(); ++i) {
      if (!config().devices(i).has_device()) continue;
      const std::string path = Element("devices", i) + ".device";
      const std::string number = std::to_string(config().devices(i).device());
      if (!CameBefore(&seen, number, path, &first)) continue;
      Add(path, "devices.device: " + number + " is in the list already (" + first + ")");
    }
    if (config().driver() != "software") return;
    for (int i = 0; i < config().devices_size(); ++i) {
      if (config().devices(i).device() < config().software_device().count()) continue;
      Add(Element("devices", i) + ".device",
          "devices.device: expected a number below software_device.count, which is " +
              std::to_string(config().software_device().count()) + ", found " +
              std::to_string(config().devices(i).device()));
    }
  }

  void CheckTenants() {
    std::map<std::string, std::string> names;
    std::map<std::string, std::string> identities;
    std::string first;
    for (int i = 0; i < config().tenants_size(); ++i) {
      const Tenant& tenant = config().tenants(i);
      const std::string path = Element("tenants", i);
      if (tenant.has_name() && CameBefore(&names, tenant.name(), path + ".name", &first)) {
        Add(path + ".name", "tenants.name: expected a name of its own, found " +
                                Quoted(tenant.name()) + ", which another tenant has (" + first +
                                ")");
      }
      for (int j = 0; j < tenant.identities_size(); ++j) {
        const std::string place = Element(path + ".identities", j);
        if (!CameBefore(&identities, tenant.identities(j), place, &first)) continue;
        Add(place, "tenants.identities: " + Quoted(tenant.identities(j)) +
                       " belongs to a tenant already (" + first + ")");
      }
      CheckTenantDevices(tenant, path + ".devices");
      if (tenant.awake() != 0 && tenant.priority() != latency_critical) {
        Add(path + ".awake",
            "tenants.awake: expected 0s, or priority: latency_critical beside it, found " +
                UnitText(DURATION, tenant.awake()) + " with " +
                PriorityClass_Name(tenant.priority()));
      }
      if (tenant.has_memory() && tenant.memory_reserved() > tenant.memory()) {
        Add(path + ".memory_reserved",
            "tenants.memory_reserved: expected at most the tenant's memory, " +
                std::to_string(tenant.memory()) + " bytes, found " +
                std::to_string(tenant.memory_reserved()));
      }
    }
  }

  void CheckTenantDevices(const Tenant& tenant, const std::string& path) {
    int listed = config().devices_size();
    if (listed != 0 && tenant.devices() > static_cast<uint32_t>(listed)) {
      Add(path, "tenants.devices: expected at most " + std::to_string(listed) +
                    ", as many as the key devices lists, found " +
                    std::to_string(tenant.devices()));
    } else if (listed == 0 && config().driver() == "software" &&
               tenant.devices() > config().software_device().count()) {
      Add(path, "tenants.devices: expected at most " +
                    std::to_string(config().software_device().count()) +
                    ", as many as software_device.count says, found " +
                    std::to_string(tenant.devices()));
    }
  }

  void CheckScheduler() {
    const Scheduler& scheduler = config().scheduler();
    if (scheduler.longest_wait() >= scheduler.turn()) return;
    bool turn_alone = draft_.places.count("scheduler.longest_wait") == 0;
    Add(turn_alone ? "scheduler.turn" : "scheduler.longest_wait",
        "scheduler: expected a longest_wait no shorter than turn, found " +
            UnitText(DURATION, scheduler.longest_wait()) + " and " +
            UnitText(DURATION, scheduler.turn()));
  }

  void CheckPolicies() {
    std::map<std::string, std::string> names;
    std::string first;
    for (int i = 0; i < config().policies_size(); ++i) {
      const std::string path = Element("policies", i) + ".name";
      const std::string& name = config().policies(i).name();
      if (name.empty() || !CameBefore(&names, name, path, &first)) continue;
      Add(path, "policies.name: expected a name of its own, found " + Quoted(name) +
                    ", which another policy has (" + first + ")");
    }
  }

  void CheckWalls() {
    if (config().walls() != shared_uid) return;
    for (int i = 1; i < config().tenants_size(); ++i) {
      const Tenant& tenant = config().tenants(i);
      if (tenant.has_trust() && tenant.trust() == config().tenants(0).trust()) continue;
      Add(draft_.places.count("walls") != 0 ? "walls" : Element("tenants", i),
          "walls: expected separate, found 'shared_uid', with which a tenant's worker can reach "
          "another's: " +
              Quoted(config().tenants(0).name()) + " and " + Quoted(tenant.name()) +
              " are not of one trust group; give both the same trust: if they may");
      return;
    }
  }

  template <class List>
  void CheckRules(const List& list, const std::string& path) {
    for (int i = 0; i < list.size(); ++i) {
      const std::string place = Element(path, i);
      CheckRule(list.Get(i), [&](const std::string& key, const std::string& sentence) {
        Add(key.empty() ? place : place + "." + key, sentence);
      });
    }
    const size_t global = path == "rules" ? 0 : static_cast<size_t>(config().rules_size());
    const size_t all = static_cast<size_t>(list.size()) + global;
    if (all <= rules::kMaxRules) return;
    Add(path, "rules: expected at most " + std::to_string(rules::kMaxRules) +
                  " of one tenant, with those of all tenants, found " + std::to_string(all));
  }

  void CheckPool() {
    std::map<std::string, std::string> seen;
    std::string first;
    for (int i = 0; i < config().pool().labels_size(); ++i) {
      const std::string path = Element("pool.labels", i);
      const std::string& label = config().pool().labels(i);
      const std::string name = label.substr(0, label.find('='));
      if (!IsLabel(label)) {
        Add(path, "pool.labels: expected NAME=VALUE of letters, digits, '-', '_' and '.', found " +
                      Quoted(label));
      } else if (CameBefore(&seen, name, path, &first)) {
        Add(path, "pool.labels: " + Quoted(name) + " has a value already (" + first + ")");
      }
    }
  }

  const Draft& draft_;
  Problems* problems_;
};

}  // namespace

void Check(const Draft& draft, Problems* problems) {
  if (wire::GuardIsOff("config_checks")) return;
  Checker(draft, problems).CheckAll();
}

}  // namespace longwire::config
