// What a tenant's block in the configuration means to the scheduler and to the keepers.
#pragma once

#include "scheduler/types.h"
#include "server/config/config.h"
#include "server/daemon/scheduling.h"
#include "server/daemon/warden_client.h"

namespace longwire::daemon {

SchedulingOptions SchedulingOptionsOf(const config::Config& config);

scheduler::SessionInfo SchedulerSession(uint64_t id, const config::Tenant& tenant,
                                        std::vector<scheduler::DeviceId> devices);

// A tenant without one has no memory limit.
warden::SetQuota QuotaOf(const config::Tenant& tenant);

// Tells scheduler and warden of every tenant; running sessions feel it at once.
void ApplyTenants(const config::Config& config, Scheduling& scheduling, WardenClient& warden);

}  // namespace longwire::daemon
