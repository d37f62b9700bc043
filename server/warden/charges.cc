// What workers have of their devices beside leases, for the daemon, and what is refunded of it.
#include <algorithm>

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

// Refunds what a worker had of devices that have no keeper now; a successor counts anew.
void Warden::CloseAccounts(uint64_t number, const Worker& worker) {
  for (int32_t device : worker.devices) {
    Keeper& keeper = keepers_[device];
    if (keeper.process.pid != 0) continue;
    uint64_t refund = 0;
    std::erase_if(keeper.state.workers, [&](const keeper::WorkerLease& lease) {
      if (lease.worker != number) return false;
      refund += lease.leased;
      keeper.state.leased -= std::min(keeper.state.leased, lease.leased);
      return true;
    });
    if (keeper.state.charges) {
      std::erase_if(keeper.state.charges->workers, [&](const keeper::WorkerCharge& charge) {
        if (charge.worker == number) refund += charge.bytes;
        return charge.worker == number;
      });
    }
    ledger_->Refund(worker.tenant, device, std::max(refund, worker.promised), {number, 0});
  }
}

}  // namespace longwire::warden
