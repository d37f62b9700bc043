#include "server/daemon/sessions/terms.h"

#include <algorithm>

#include "server/daemon/settings/safe_limits.h"

namespace longwire::daemon {
namespace {

// Turns that do not drain are waited for this many lengths. While two best-effort contexts run at
// once their short time slices make each several times slower, so one overrun would cause the next:
// with 4 lengths of 10 ms some runs on an H200 stayed at 16 kernels of 21 ms a second instead
// of 44. And kernels of half a second drain whatever a turn's length is: shares are kept beside
// them.
constexpr uint32_t kDrainLengths = 40;
constexpr std::chrono::milliseconds kLeastDrain{600};

bool IsLatencyCritical(const config::Tenant& tenant) {
  return tenant.priority() == config::latency_critical;
}

// Nothing is kept for tenants that are not in the configuration any more, or were in that of an
// earlier daemon. Sessions of theirs that run on keep their limit.
void EndReservations(const config::Config& config, WardenClient& warden) {
  if (!warden.IsConnected()) return;  // the next one knows of none
  std::string sentence;
  auto stats = warden.GetStats(&sentence);
  if (!stats) return;
  for (const warden::TenantStats& known : stats->tenants) {
    bool listed = std::ranges::any_of(config.tenants(), [&](const config::Tenant& tenant) {
      return tenant.name() == known.tenant;
    });
    if (!listed && known.reserved != 0) warden.SetQuota({known.tenant, known.limit, 0, false});
  }
}

}  // namespace

SchedulingOptions SchedulingOptionsOf(const config::Config& config) {
  const config::Scheduler& told = config.scheduler();
  SchedulingOptions options;
  options.enabled = told.enabled();
  options.policy = config::Policy_Name(told.policy());
  options.times.turn_length = std::chrono::nanoseconds(told.turn());
  options.times.drain_lengths =
      std::max(kDrainLengths, static_cast<uint32_t>(kLeastDrain / options.times.turn_length));
  options.times.max_wait = std::chrono::nanoseconds(told.longest_wait());
  options.short_time_slice = told.short_time_slice();
  return options;
}

scheduler::TenantTerms ConfiguredTerms(const config::Tenant& tenant) {
  return {IsLatencyCritical(tenant) ? scheduler::PriorityClass::kLatencyCritical
                                    : scheduler::PriorityClass::kBestEffort,
          tenant.weight()};
}

images::ImageStore::Options ImageStoreOptionsOf(const config::Config& config) {
  const config::ModuleCache& told = config.module_cache();
  return {told.directory() == "none" ? "" : told.directory(), told.size(),
          told.has_tenant_size() ? told.tenant_size() : UINT64_MAX, told.tenant_images()};
}

scheduler::SessionInfo SchedulerSession(uint64_t id, const config::Tenant& tenant,
                                        std::vector<scheduler::DeviceId> devices) {
  scheduler::SessionInfo info;
  info.id = id;
  info.tenant = tenant.name();
  info.priority_class = ConfiguredTerms(tenant).priority_class;
  info.weight = tenant.weight();
  info.devices = std::move(devices);
  return info;
}

std::chrono::nanoseconds AwakeOf(const config::Tenant& tenant) {
  return std::chrono::nanoseconds(IsLatencyCritical(tenant) ? tenant.awake() : 0);
}

uint64_t HostMemoryOf(const config::Tenant& tenant) {
  return tenant.has_host_memory() ? tenant.host_memory() : gates::UsualHostMemory();
}

gates::HostMemoryTerms HostMemoryTermsOf(const config::Tenant& tenant) {
  gates::HostMemoryTerms terms;
  if (tenant.has_session_host_memory()) terms.session_limit = tenant.session_host_memory();
  terms.modules = tenant.modules();
  terms.tenant = tenant.name();
  return terms;
}

warden::SetQuota QuotaOf(const config::Config& config, const config::Tenant& tenant,
                         uint64_t lendable) {
  return {tenant.name(), MemoryLimitOf(config, tenant, lendable), tenant.memory_reserved(),
          IsLatencyCritical(tenant)};
}

keeper::KeeperLimits LimitsOf(const config::Config& config) {
  const config::Memory& memory = config.memory();
  return {memory.pooled(), memory.session_idle(), memory.session_idle_time(),
          memory.swap_host_memory(), memory.prepared()};
}

message::LogTerms LogTermsOf(const config::Config& config) {
  return {config.admission().log_lines_per_second()};
}

void ApplyTenants(const config::Config& config, Scheduling& scheduling, AwakeCores& awake_cores,
                  WardenClient& warden, uint64_t lendable) {
  awake_cores.SetCores(config.scheduler().awake_cores());
  for (const config::Tenant& tenant : config.tenants()) {
    const scheduler::TenantTerms terms = ConfiguredTerms(tenant);
    scheduling.ChangeTenant(tenant.name(), terms.priority_class, terms.weight);
    awake_cores.SetTenant(tenant.name(), AwakeOf(tenant));
    warden.SetQuota(QuotaOf(config, tenant, lendable));
  }
  warden.SetLimits(LimitsOf(config));
  warden.SetLogTerms(LogTermsOf(config));
  EndReservations(config, warden);
}

}  // namespace longwire::daemon
