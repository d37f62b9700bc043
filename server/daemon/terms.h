// What the configuration means to the parts that follow it.
#pragma once

#include "scheduler/types.h"
#include "server/config/config.h"
#include "server/daemon/scheduling.h"
#include "server/daemon/warden_client.h"
#include "server/images/image_store.h"

namespace longwire::daemon {

SchedulingOptions SchedulingOptionsOf(const config::Config& config);

// Without a folder when images are not kept.
images::ImageStore::Options ImageStoreOptionsOf(const config::Config& config);

scheduler::SessionInfo SchedulerSession(uint64_t id, const config::Tenant& tenant,
                                        std::vector<scheduler::DeviceId> devices);

// A tenant without one has no memory limit.
warden::SetQuota QuotaOf(const config::Tenant& tenant);
keeper::KeeperLimits LimitsOf(const config::Config& config);

// Tells scheduler and warden of every tenant; running sessions feel it at once.
void ApplyTenants(const config::Config& config, Scheduling& scheduling, WardenClient& warden);

}  // namespace longwire::daemon
