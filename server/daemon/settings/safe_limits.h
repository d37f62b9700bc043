// Limits of tenants that nobody has set: once other hosts can reach the daemon, one tenant shall
// not be able to take everything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/config.pb.h"

namespace longwire::daemon {

// Sessions at once; UINT32_MAX: no limit.
uint32_t SessionLimitOf(const config::Config& config, const config::Tenant& tenant);

// Bytes of device memory; UINT64_MAX: no limit. `lendable`: of all devices together; 0: not known.
uint64_t MemoryLimitOf(const config::Config& config, const config::Tenant& tenant,
                       uint64_t lendable);

// A sentence for each limit of the tenant that nobody has set, though other hosts can reach the
// daemon.
std::vector<std::string> UnsetLimits(const config::Config& config, const config::Tenant& tenant);
// The same for limits that hold for each identity, whatever its tenant.
std::vector<std::string> UnsetLimits(const config::Config& config);

}  // namespace longwire::daemon
