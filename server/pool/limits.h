// Tenants' limits over the whole pool. How many sessions a tenant has is counted in claims by the
// placer; its memory is held by hosts in parts (parts.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "server/pool/directory.h"

namespace longwire::pool {

struct TenantLimit {
  uint64_t sessions = 0;  // 0: no limit
  uint64_t memory = 0;    // bytes; 0: no limit
};
using TenantLimits = std::map<std::string, TenantLimit>;
using Counts = std::map<std::string, uint64_t>;

// Claims by tenant.
Counts CountSessions(const Directory& directory);
// Why the tenant gets no further session; empty: it may have one.
std::string WhyFull(const TenantLimits& limits, const Counts& counts, const std::string& tenant);
// How many more it may have; UINT64_MAX: no limit.
uint64_t SessionsLeft(const TenantLimits& limits, const Counts& counts, const std::string& tenant);
// By the placer: writes the limits to ten/T where etcd has others. False when etcd did not answer,
// or another one is the placer.
bool WriteLimits(etcd::Client& client, const TenantLimits& limits, int64_t elected,
                 std::string* sentence);

}  // namespace longwire::pool
