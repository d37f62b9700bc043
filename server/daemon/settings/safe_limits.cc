#include "server/daemon/settings/safe_limits.h"

#include <algorithm>

#include "server/config/config.h"

namespace longwire::daemon {
namespace {

// Of max_sessions: four tenants that take what they can leave room for each other.
constexpr uint32_t kPartOfSessions = 4;
constexpr uint64_t kGranularity = uint64_t{2} << 20;  // of limits of memory

uint64_t ThreeQuarters(uint64_t bytes) {
  uint64_t part = bytes / 4 * 3;
  return part - part % kGranularity;
}

}  // namespace

uint32_t SessionLimitOf(const config::Config& config, const config::Tenant& tenant) {
  if (tenant.has_sessions()) return tenant.sessions();
  if (!config::LeavesHost(config)) return UINT32_MAX;
  return std::max(1u, config.max_sessions() / kPartOfSessions);
}

uint64_t MemoryLimitOf(const config::Config& config, const config::Tenant& tenant,
                       uint64_t lendable) {
  if (tenant.has_memory()) return tenant.memory();
  if (lendable == 0 || !config::LeavesHost(config)) return UINT64_MAX;
  return std::max(ThreeQuarters(lendable), tenant.memory_reserved());
}

std::vector<std::string> UnsetLimits(const config::Config& config, const config::Tenant& tenant) {
  std::vector<std::string> unset;
  if (!config::LeavesHost(config)) return unset;
  const std::string whose = "tenant '" + tenant.name() + "': ";
  if (!tenant.has_sessions()) {
    unset.push_back(whose + "sessions is not set; " +
                    std::to_string(SessionLimitOf(config, tenant)) +
                    " are allowed, a quarter of max_sessions");
  }
  if (!tenant.has_memory()) {
    unset.push_back(whose + "memory is not set; three quarters of the devices' memory are allowed");
  }
  return unset;
}

std::vector<std::string> UnsetLimits(const config::Config& config) {
  std::vector<std::string> unset;
  if (!config::LeavesHost(config)) return unset;
  const config::Admission& admission = config.admission();
  if (!admission.has_openings_per_second()) {
    unset.push_back("admission: openings_per_second is not set; each identity may open " +
                    std::to_string(config::OpeningsPerSecond(config)) + " sessions a second, and " +
                    std::to_string(admission.openings_at_once()) + " at once");
  }
  return unset;
}

}  // namespace longwire::daemon
