// What workers have of their devices beside leases, for the daemon.
#include "server/warden/warden.h"

namespace longwire::warden {

ChargeStats Warden::Charges() const {
  ChargeStats stats;
  for (const auto& [device, keeper] : keepers_) {
    if (!keeper.state.charges) continue;
    DeviceCharge& figures = stats.devices.emplace_back();
    figures.device = device;
    figures.others = keeper.state.charges->others;
    for (const keeper::WorkerCharge& charge : keeper.state.charges->workers) {
      auto worker = workers_.find(charge.worker);
      if (worker == workers_.end()) continue;
      figures.charged += charge.bytes;
      stats.sessions.push_back({worker->second.session, device, charge.bytes});
    }
  }
  return stats;
}

HealthStats Warden::Health() const {
  HealthStats stats;
  for (const auto& [device, keeper] : keepers_) {
    if (keeper.state.health) stats.devices.push_back({device, *keeper.state.health});
  }
  return stats;
}

}  // namespace longwire::warden
