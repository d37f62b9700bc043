// Translates the configuration for the parts of the daemon that use it.
#pragma once

#include "scheduler/types.h"
#include "server/config/config.h"
#include "server/daemon/sessions/scheduling.h"
#include "server/daemon/sessions/warden_client.h"
#include "server/daemon/sharing/awake_cores.h"
#include "server/gates/host_memory_table.h"
#include "server/images/image_store.h"

namespace longwire::daemon {

SchedulingOptions SchedulingOptionsOf(const config::Config& config);

// Class and weight by the configuration; Scheduling::Terms knows those in force.
scheduler::TenantTerms ConfiguredTerms(const config::Tenant& tenant);

// Without a folder when images are not cached.
images::ImageStore::Options ImageStoreOptionsOf(const config::Config& config);

scheduler::SessionInfo SchedulerSession(uint64_t id, const config::Tenant& tenant,
                                        std::vector<scheduler::DeviceId> devices);

// How long its sessions may stay awake between their messages, by its configuration; 0: they may
// not.
std::chrono::nanoseconds AwakeOf(const config::Tenant& tenant);

// Of the memory of this host that all the tenant's sessions may hold, and one of them.
uint64_t HostMemoryOf(const config::Tenant& tenant);
gates::HostMemoryTerms HostMemoryTermsOf(const config::Tenant& tenant);

// `lendable`: bytes of all devices together (access/safe_limits.h).
message::LogTerms LogTermsOf(const config::Config& config);
warden::SetQuota QuotaOf(const config::Config& config, const config::Tenant& tenant,
                         uint64_t lendable);
keeper::KeeperLimits LimitsOf(const config::Config& config);

// Applies every tenant's settings to scheduler and warden, also for running sessions.
void ApplyTenants(const config::Config& config, Scheduling& scheduling, AwakeCores& awake_cores,
                  WardenClient& warden, uint64_t lendable);

}  // namespace longwire::daemon
