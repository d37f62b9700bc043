#include "server/daemon/pool/pool.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/uuid_text.h"
#include "link/transport/codes.h"
#include "link/transport/tls_files.h"
#include "server/config/config.h"
#include "server/daemon/settings/paths.h"
#include "server/daemon/settings/safe_limits.h"
#include "server/pool/forget.h"

namespace longwire::daemon {
namespace {

// Shorter ones end in the pauses of a busy host; after it nothing is placed at one that died.
constexpr int64_t kLeaseSeconds = 6;
constexpr std::chrono::seconds kLastCalls{4};  // of etcd, at longwired's end
constexpr uint64_t kSecond = 1'000'000'000;    // in nanoseconds, as times of the configuration are
// Steps of the load that others see: small changes are not worth a write.
constexpr double kBusySteps = 10;
constexpr uint64_t kFreeStep = uint64_t{256} << 20;

// Of the driver that pretends to be a GPU: the same on every host.
bool IsSoftware(const warden::DeviceStats& device) {
  return device.facts.uuid.starts_with("softgpu-device-");
}

std::string UuidOf(const std::string& host, const warden::DeviceStats& device) {
  if (IsSoftware(device)) return host + "-software-" + std::to_string(device.device);
  return base::UuidText(device.facts.uuid);
}

// Beside what else outlives a restart; where there is no such folder, beside the warden's socket.
std::string StateFile(const config::Config& config) {
  const std::string& socket = config.warden();
  const std::string folder = StateDirectory();
  return (folder.empty() ? socket.substr(0, socket.rfind('/')) : folder) + "/pool-host";
}

pool::HostOptions HostOptionsOf(const config::Config& config) {
  pool::HostOptions options;
  options.name = config.pool().host();
  options.address = config.pool().has_address() ? config.pool().address() : config.listen(0);
  options.version = LONGWIRE_VERSION;
  options.oldest_protocol = wire::SpokenVersions().oldest;
  options.newest_protocol = wire::SpokenVersions().newest;
  options.state_file = StateFile(config);
  for (const std::string& label : config.pool().labels()) {
    options.labels[label.substr(0, label.find('='))] = label.substr(label.find('=') + 1);
  }
  return options;
}

pool::TenantLimits LimitsOf(const config::Pool& config) {
  pool::TenantLimits limits;
  for (const config::PoolLimit& told : config.limits()) {
    limits[told.tenant()] = {told.sessions(), told.memory()};
  }
  return limits;
}

scheduler::pool::Options PlannerOptionsOf(const config::Pool& config) {
  scheduler::pool::Options options;
  options.policy = config::Pool::Rule_Name(config.placement());
  options.patience = config.patience() / kSecond;
  return options;
}

}  // namespace

Pool::Pool(SessionTable& table, const config::Pool& config) : table_(table), config_(config) {
  table_.images().TellUsed([used = used_images_](const std::string& tenant,
                                                 const std::string& program,
                                                 const std::string& digest) {
    used->Used(pool::ProgramName(tenant, program), pool::ImageName(tenant, digest));
  });
  table_.JoinPool(this);
  // Nothing more, until it is known which part of its memory this host has.
  for (const auto& [tenant, limit] : LimitsOf(config_)) {
    if (limit.memory != 0) SetPart(tenant, {});
  }
}

bool Pool::Start(std::string* sentence) {
  etcd::Options options;
  options.members = {config_.etcd().begin(), config_.etcd().end()};
  if (config_.has_tls()) {
    const config::PoolTls& tls = config_.tls();
    options.tls = transport::LoadTls({tls.certificate(), tls.key(), tls.authority()},
                                     transport::TlsRole::kClient, sentence);
    if (!options.tls) *sentence = "pool.tls: " + *sentence;
    if (!options.tls) return false;
  }
  client_ = std::make_unique<etcd::Client>(std::move(options));
  lease_ = std::make_unique<etcd::Lease>(*client_, kLeaseSeconds);
  host_ =
      std::make_unique<pool::HostPart>(*client_, *lease_, *this, HostOptionsOf(*table_.config()));
  front_ = std::make_unique<pool::FrontPart>(*client_, *lease_, config_.host());
  auto is_in = [this] {
    std::string ignored;
    return host_->joined(&ignored);
  };
  placer_ = std::make_unique<pool::PlacerPart>(
      *client_, *lease_, config_.host(), PlannerOptionsOf(config_), LimitsOf(config_),
      std::chrono::ceil<std::chrono::seconds>(config::ResumeGrace(*table_.config())), is_in);
  parts_ =
      std::make_unique<pool::PartsPart>(*client_, *this, config_.host(), LimitsOf(config_), is_in);
  reader_ = std::make_unique<pool::Reader>(*client_);
  emptier_ = std::make_unique<Emptier>(table_, [this] { return ShallEmpty(); });
  started_ = lease_->Start(sentence) && host_->Start(sentence) && front_->Start(sentence) &&
             placer_->Start(sentence) && parts_->Start(sentence) && reader_->Start(sentence) &&
             emptier_->Start(sentence);
  if (!started_) *sentence = "the pool: " + *sentence;
  return started_;
}

void Pool::Stop() {
  // Also when etcd hangs.
  if (client_ != nullptr) client_->EndWithin(kLastCalls);
  if (emptier_ != nullptr) emptier_->Stop();
  if (reader_ != nullptr) reader_->Stop();
  if (parts_ != nullptr) parts_->Stop();
  if (placer_ != nullptr) placer_->Stop();
  if (front_ != nullptr) front_->Stop();
  if (host_ != nullptr) host_->Stop();
  if (lease_ != nullptr) lease_->Stop();
}

bool Pool::HasStrangers(const warden::Stats& stats) {
  return std::ranges::any_of(stats.sessions, [this](const warden::SessionStats& one) {
    return one.session != 0 && table_.Find(one.session) == nullptr;
  });
}

// What this host's own ledger would refuse.
void Pool::DescribeLimits(pool::Capacity* capacity) {
  const auto config = table_.config();
  const auto known = [](uint64_t limit) {
    return limit >= UINT32_MAX ? 0 : static_cast<uint32_t>(limit);
  };
  capacity->set_sessions_limit(config->max_sessions());
  capacity->set_sessions_of_identity(known(table_.entrance().SessionsOfIdentity()));
  capacity->set_sessions_of_tenant(known(SessionLimitOf(*config, config::Tenant())));
  for (const config::Tenant& tenant : config->tenants()) {
    if (!tenant.has_sessions()) continue;
    pool::Capacity::OfTenant& one = *capacity->add_of_tenants();
    one.set_tenant(tenant.name());
    one.set_sessions(tenant.sessions());
  }
}

bool Pool::Describe(pool::Capacity* capacity, std::string* sentence) {
  auto stats = table_.warden().GetStats(sentence);
  if (!stats) return false;
  // What an earlier daemon's sessions hold is in no claim from now on.
  *sentence = "workers of an earlier longwired are just ending";
  if (!described_ && HasStrangers(*stats)) return false;
  described_ = true;
  const std::set<int32_t> cordoned = table_.placements().Cordoned();
  DescribeLimits(capacity);
  capacity->set_cordoned(table_.draining());
  capacity->set_takes_moves(table_.config()->moves_from_size() != 0);
  for (const warden::DeviceStats& device : stats->devices) {
    pool::Device& to = *capacity->add_devices();
    to.set_ordinal(device.device);
    to.set_uuid(UuidOf(config_.host(), device));
    to.set_name(base::Printable(device.name));
    to.set_total(device.lendable);
    to.set_cordoned(device.keeper_pid == 0 || cordoned.contains(device.device));
  }
  return true;
}

pool::Load Pool::Loads() {
  pool::Load load;
  std::string sentence;
  auto stats = table_.warden().GetStats(&sentence);
  if (!stats) return load;
  const std::map<uint32_t, double> busy = table_.scheduling().BusyDevices();
  for (const auto& [device, bytes] : table_.placements().Free(*stats)) {
    pool::Load::Of& of = *load.add_devices();
    auto found = busy.find(static_cast<uint32_t>(device));
    of.set_ordinal(device);
    of.set_busy(found == busy.end() ? 0 : std::round(found->second * kBusySteps) / kBusySteps);
    of.set_free_bytes(bytes / kFreeStep * kFreeStep);
  }
  return load;
}

std::optional<pool::Warm> Pool::Warmth() {
  if (config_.placement() != config::Pool::affinity) return std::nullopt;
  std::vector<std::string> cached;
  for (const auto& [tenant, digest] : table_.images().Newest(pool::UsedImages::kCached)) {
    cached.push_back(pool::ImageName(tenant, wire::Hexadecimal(digest)));
  }
  return used_images_->Record(cached);
}

pool::Claims Pool::Running() {
  pool::Claims claims;
  for (const auto& session : table_.List()) {
    const ClientDescription& client = session->client();
    pool::Claim& claim = claims[NumberOf(*session)];
    claim.set_state(pool::OPEN);
    claim.set_tenant(client.peer.tenant->name());
    claim.set_identity(client.peer.identity);
    claim.set_program(client.program);
    claim.set_bytes(client.claimed_bytes);
    claim.set_time_limit(client.time_limit);
    claim.set_local(client.claim.empty());
    claim.set_alone(client.alone);
    for (const warden::KeeperProcess& keeper : session->worker().keepers) {
      claim.add_devices(keeper.device);
    }
  }
  return claims;
}

bool Pool::AreGone(const std::vector<uint64_t>& sessions) {
  if (sessions.empty()) return true;
  std::string sentence;
  auto stats = table_.warden().GetStats(&sentence);
  return stats && std::ranges::none_of(stats->sessions, [&](const warden::SessionStats& one) {
           return std::ranges::count(sessions, one.session) != 0;
         });
}

bool Pool::Memory(std::map<std::string, pool::TenantMemory>* by_tenant) {
  std::string sentence;
  auto stats = table_.warden().GetStats(&sentence);
  if (!stats) return false;
  for (const warden::TenantStats& tenant : stats->tenants) {
    (*by_tenant)[tenant.tenant].used = tenant.leased;
  }
  if (!stats->wanted) return true;
  for (const warden::WantedMemory& wanted : stats->wanted->tenants) {
    (*by_tenant)[wanted.tenant].wanted = wanted.bytes;
  }
  return true;
}

void Pool::SetPart(const std::string& tenant, const pool::PartTerms& terms) {
  table_.warden().SetPart(tenant, terms.bytes, {terms.ceiling, terms.spare});
}

size_t Pool::EndAll(const std::string& sentence) {
  const auto sessions = table_.List();
  for (const auto& session : sessions) {
    table_.End(session, {static_cast<uint32_t>(transport::kLaunchFailed), sentence});
  }
  return sessions.size();
}

bool Pool::Withdraw(const pool::WithdrawalWish& wish, std::string* sentence) {
  return pool::Withdraw(*client_, wish, sentence);
}

bool Pool::Forget(const std::string& host, std::string* sentence) {
  return pool::Forget(*client_, host, sentence);
}

}  // namespace longwire::daemon
