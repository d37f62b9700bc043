#include "server/daemon/checkpoints/own_suspensions.h"

namespace longwire::daemon {

bool BytesLeft(const config::Config& config, const std::vector<Ticket>& suspended,
               const std::string& tenant, uint64_t* bytes, std::string* sentence) {
  *sentence =
      "this server suspends no sessions for their programs: its configuration has no "
      "checkpoint_dir";
  if (config::CheckpointFolder(config).empty()) return false;
  *sentence =
      "this server suspends no sessions for their programs: its administrator can allow a number "
      "of them (checkpoint_own_sessions)";
  if (config.checkpoint_own_sessions() == 0) return false;
  uint64_t files = 0, used = 0;
  for (const Ticket& one : suspended) {
    if (one.tenant != tenant || !one.file.starts_with(kOwnFiles)) continue;
    ++files;
    used += one.bytes;
  }
  *sentence =
      "the tenant has as many sessions suspended by their programs as it may "
      "(checkpoint_own_sessions: " +
      std::to_string(config.checkpoint_own_sessions()) + "); restore or end one";
  if (files >= config.checkpoint_own_sessions()) return false;
  *sentence =
      "the files of the tenant's suspended sessions have as many bytes as they may "
      "(checkpoint_own_bytes); restore or end one";
  if (used >= config.checkpoint_own_bytes()) return false;
  *bytes = config.checkpoint_own_bytes() - used;
  sentence->clear();
  return true;
}

OwnSuspensions::Turn::Turn(OwnSuspensions& all, const std::string& tenant)
    : all_(all), tenant_(tenant), begins_(all.Begin(tenant)) {}

OwnSuspensions::Turn::~Turn() {
  if (begins_) all_.End(tenant_);
}

bool OwnSuspensions::Begin(const std::string& tenant) {
  base::MutexLock lock(mutex_);
  return tenants_.insert(tenant).second;
}

void OwnSuspensions::End(const std::string& tenant) {
  base::MutexLock lock(mutex_);
  tenants_.erase(tenant);
}

}  // namespace longwire::daemon
