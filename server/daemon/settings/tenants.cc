#include "server/daemon/settings/tenants.h"

#include <algorithm>
#include <string>

#include "server/config/config.h"

namespace longwire::daemon {

std::shared_ptr<const config::Tenant> FindTenant(const config::LiveConfig::Snapshot& config,
                                                 std::string_view identity) {
  if (config->tenants_size() == 0) {
    static const auto everybody = [] {
      auto tenant = std::make_shared<config::Tenant>();
      tenant->set_name("default");
      // Not limits of a tenant but of what a session may have: as for those who do not say.
      config::Config silent;
      silent.add_tenants();
      config::FillDefaults("", &silent);
      tenant->set_pinned_memory(silent.tenants(0).pinned_memory());
      tenant->set_modules(silent.tenants(0).modules());
      return tenant;
    }();
    return everybody;
  }
  for (const config::Tenant& tenant : config->tenants()) {
    // Keeps its configuration alive.
    if (std::ranges::count(tenant.identities(), identity) != 0) return {config, &tenant};
  }
  return nullptr;
}

bool NamesOtherUsers(const config::Config& config, uid_t own) {
  std::string mine = std::string(kUidPrefix) + std::to_string(own);
  for (const config::Tenant& tenant : config.tenants()) {
    for (const std::string& identity : tenant.identities()) {
      if (identity.starts_with(kUidPrefix) && identity != mine) return true;
    }
  }
  return false;
}

}  // namespace longwire::daemon
