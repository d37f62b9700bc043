// Who may open a session, how those who may not are answered and counted, and by which rules of the
// operator those who may are served; and what changes for them with a reload.
#include <algorithm>

#include "base/printable.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/pool/requirements.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/sessions/terms.h"
#include "server/daemon/settings/safe_limits.h"
#include "server/rules/rules_of.h"
#include "wire/guards.h"

namespace longwire::daemon {

using transport::Log;
using transport::LogLevel;

uint64_t DeclaredBytes(const Requirements& told, PlacedSession* placed) {
  if (placed == nullptr || told.bytes == 0) return told.bytes;
  if (!placed->number.empty()) return placed->bytes;
  placed->bytes = std::max(placed->bytes, told.bytes);
  return told.bytes;
}

OpenedSession SessionTable::Refuse(const Peer& peer, const wire::OpenRequest* request,
                                   OpeningRefusal refusal) {
  failed_.fetch_add(1);
  identities_.Refused(peer, refusal.reason);
  std::string who = peer.address;  // its sentence names the identity
  if (request != nullptr) {
    who = base::Printable(request->program) + " (pid " + std::to_string(request->pid) + " on " +
          base::Printable(request->host) + ", from " + peer.address + ", '" + peer.identity + "')";
  }
  Log(LogLevel::kWarning, peer.subject(),
      "a session for " + who + " was refused: " + refusal.sentence);
  OpenedSession refused;
  refused.reply.code = refusal.code;
  refused.reply.sentence = std::move(refusal.sentence);
  return refused;
}

OpeningRefusal SessionTable::Stopping() {
  return {transport::kDeviceUnavailable, RefusalReason::kStopping, "the server shuts down"};
}

bool SessionTable::Admit(const Peer& peer, size_t descriptors, OpeningRefusal* refusal) {
  using Entry = admission::Entrance::Entry;
  refusal->code = transport::kDeviceUnavailable;
  const Entry entry = entrance_.EnterSession(peer.identity, descriptors, &refusal->sentence);
  if (entry != Entry::kEntered) {
    refusal->reason = entry == Entry::kTooManyOfIdentity ? RefusalReason::kIdentitySessions
                                                         : RefusalReason::kDescriptors;
    return false;
  }
  if (AdmitTenant(*peer.tenant, refusal)) return true;
  entrance_.LeaveSession(peer.identity, descriptors);
  return false;
}

bool SessionTable::AdmitTenant(const config::Tenant& tenant, OpeningRefusal* refusal) {
  const config::LiveConfig::Snapshot config = live_.Get();
  const uint32_t most = config->max_sessions();
  const uint32_t limit = SessionLimitOf(*config, tenant);
  base::MutexLock lock(mutex_);
  size_t all = 0;
  for (const auto& [name, count] : held_) all += count;
  bool limited = !wire::GuardIsOff("quota_sessions");
  if (ending_) {
    *refusal = Stopping();
  } else if (draining_) {
    refusal->reason = RefusalReason::kDraining;
    refusal->sentence = "the server takes no new sessions: its administrator lets it run empty";
  } else if (all >= most) {
    refusal->reason = RefusalReason::kServerSessions;
    refusal->sentence = "the server has " + std::to_string(most) +
                        " sessions already, as many as its max_sessions allows";
  } else if (limited && held_[tenant.name()] >= limit) {
    refusal->reason = RefusalReason::kTenantSessions;
    refusal->sentence = "the tenant '" + tenant.name() + "' has " +
                        std::to_string(held_[tenant.name()]) + " sessions already; its limit is " +
                        std::to_string(limit);
  } else {
    ++held_[tenant.name()];
    return true;
  }
  return false;
}

void SessionTable::SetDraining(bool draining) {
  base::MutexLock lock(mutex_);
  draining_ = draining;
}

bool SessionTable::draining() {
  base::MutexLock lock(mutex_);
  return draining_;
}

void SessionTable::Release(const Peer& peer, size_t descriptors) {
  entrance_.LeaveSession(peer.identity, descriptors);
  base::MutexLock lock(mutex_);
  const std::string& tenant = peer.tenant->name();
  if (--held_[tenant] == 0) held_.erase(tenant);
}

size_t SessionTable::StreamsOf(const std::string& identity) {
  size_t streams = 0;
  for (const auto& session : List()) {
    const ClientDescription& client = session->client();
    if (client.peer.identity == identity && !client.local()) streams += session->lanes();
  }
  return streams;
}

void SessionTable::SendTerms(const config::Config& config) {
  for (const config::Tenant& tenant : config.tenants()) {
    host_memory_.SetLimit(tenant.name(), HostMemoryOf(tenant));
  }
  const auto log_terms = message::Pack(LogTermsOf(config));
  warden_->SetGrace(config::ResumeGrace(config));
  for (const auto& session : List()) {
    (void)wire::SendMessage(session->ControlSocket().get(), log_terms);
    SendRules(config, *session);
    SendStatistics(config, *session);
    for (uint32_t lane = 0; lane < session->lanes(); ++lane) {
      session->lane(lane).SetTerms(config::ResumeGrace(config), config.compression());
    }
  }
}

// Before its first call: it may be one that is denied.
void SessionTable::GiveRules(ServerSession& session, gates::GatePage& page, bool prepared) {
  const ClientDescription& client = session.client();
  auto rules = rules::RulesOf(*live_.Get(), client.peer.tenant->name(), client.program);
  auto counted = StatisticsFor(*live_.Get(), session, prepared);
  if (counted != nullptr) {
    page.has_statistics() = 1;
    session.SetStatistics(std::move(counted));
  }
  if (rules.rules.empty()) return;
  page.has_rules() = 1;
  session.SetRules(message::Pack(rules));
}

std::shared_ptr<statistics::Page> SessionTable::StatisticsFor(const config::Config& config,
                                                              const ServerSession& session,
                                                              bool prepared) {
  const ClientDescription& client = session.client();
  const std::string& tenant = client.peer.tenant->name();
  ProgramStatistics::CountedSession counted{session.id(),
                                            tenant,
                                            client.program,
                                            client.local(),
                                            config.kernel_statistics() == config::sampled,
                                            {},
                                            prepared};
  for (const rules::Rule& rule : rules::RulesOf(config, tenant, client.program).rules) {
    counted.rules.push_back(rule.name);
  }
  return statistics_.Begin(counted);
}

// Behind its rules: the places of those are counted.
void SessionTable::SendStatistics(const config::Config& config, const ServerSession& session) {
  auto page = StatisticsFor(config, session);
  std::vector<int> memory;
  if (page != nullptr) memory.push_back(page->descriptor());
  (void)wire::SendMessage(session.ControlSocket().get(), message::Pack(statistics::Terms{}),
                          memory);
  if (page != nullptr) page->CloseDescriptor();
}

// Also none: those that it has may have been taken away.
void SessionTable::SendRules(const config::Config& config, const ServerSession& session) {
  const ClientDescription& client = session.client();
  const auto rules =
      message::Pack(rules::RulesOf(config, client.peer.tenant->name(), client.program));
  if (wire::SendMessage(session.ControlSocket().get(), rules)) return;
  Log(LogLevel::kWarning, session.subject(), "its worker does not take the rules; it is ending");
}

}  // namespace longwire::daemon
