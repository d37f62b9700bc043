// Tenants, identities and, where wanted, single sessions.
#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {

void AddTenants(const Scrape& scrape, Families* families) {
  Family& sessions = families->Gauge("longwire_tenant_sessions", "Sessions of a tenant.");
  Family& memory = families->Gauge(
      "longwire_tenant_memory_bytes",
      "Device memory leased to a tenant's sessions, and what they have from the driver itself.");
  Family& charged =
      families->Gauge("longwire_tenant_memory_charged_bytes",
                      "Device memory that a tenant's sessions have from the driver itself.");
  Family& limit = families->Gauge("longwire_tenant_memory_limit_bytes",
                                  "A tenant's limit of device memory, where it has one.");
  Family& time =
      families->Counter("longwire_tenant_gpu_seconds_total", "GPU time that a tenant has used.");
  Family& awake =
      families->Counter("longwire_tenant_awake_seconds_total",
                        "Processor time in which threads of a tenant's sessions stayed awake.");
  Family& host = families->Gauge("longwire_tenant_host_memory_bytes",
                                 "Memory of the host that a tenant's workers hold for its "
                                 "sessions: calls and bytes that wait, "
                                 "pinned memory, modules.");
  Family& host_limit = families->Gauge("longwire_tenant_host_memory_limit_bytes",
                                       "A tenant's limit of memory of the host.");
  for (const transport::TenantFigures& tenant : scrape.figures.tenants()) {
    const Labels labels = {{"tenant", tenant.name()}};
    sessions.Add(labels, tenant.sessions());
    memory.Add(labels, tenant.memory_leased());
    charged.Add(labels, tenant.memory_charged());
    if (tenant.memory_limit() != UINT64_MAX) limit.Add(labels, tenant.memory_limit());
    time.Add(labels, tenant.gpu_seconds());
    awake.Add(labels, tenant.awake_seconds());
    host.Add(labels, tenant.host_memory());
    host_limit.Add(labels, tenant.host_memory_limit());
  }
}

void AddIdentities(const Scrape& scrape, Families* families) {
  Family& sessions = families->Gauge("longwire_identity_sessions", "Sessions of an identity.");
  Family& memory = families->Gauge("longwire_identity_memory_bytes",
                                   "Device memory leased to an identity's sessions.");
  Family& opened = families->Counter("longwire_identity_sessions_opened_total",
                                     "Sessions that an identity opened.");
  Family& refused = families->Counter("longwire_identity_sessions_refused_total",
                                      "Sessions that an identity was refused.");
  Family& bytes = families->Counter("longwire_identity_bytes_total",
                                    "Bytes of the logs of an identity's sessions, by direction.");
  Family& time = families->Counter("longwire_identity_session_seconds_total",
                                   "How long an identity's sessions were there, together.");
  for (const transport::IdentityFigures& one : scrape.figures.identities()) {
    Labels labels = {{"tenant", one.tenant()}, {"identity", one.identity()}};
    sessions.Add(labels, one.sessions());
    memory.Add(labels, one.memory_leased());
    opened.Add(labels, one.opened());
    refused.Add(labels, one.refused());
    time.Add(labels, one.session_seconds());
    labels.push_back({"direction", "up"});
    bytes.Add(labels, one.bytes_up());
    labels.back().value = "down";
    bytes.Add(labels, one.bytes_down());
  }
}

void AddSessions(const Scrape& scrape, Families* families) {
  Family& bytes =
      families->Counter("longwire_session_bytes_total", "Bytes of a session's log, by direction.");
  Family& saved = families->Counter("longwire_session_saved_bytes_total",
                                    "Bytes of a session's logs that compression made less.");
  Family& host = families->Gauge("longwire_session_host_memory_bytes",
                                 "Memory of the host that a session's worker holds for it.");
  Family& held = families->Counter("longwire_session_held_total",
                                   "Times that a session's work was held back on a device.");
  Family& closed = families->Gauge("longwire_session_gate_closed",
                                   "1 while a session's work is held back on a device.");
  Family& program = families->Gauge("longwire_session_program_info",
                                    "1 for a session of a program with several servers, by the "
                                    "id that all its sessions have.");
  for (const transport::Session& session : scrape.figures.sessions()) {
    Labels labels = {{"session", std::to_string(session.id())}, {"tenant", session.tenant()}};
    saved.Add(labels, session.bytes_saved());
    host.Add(labels, session.host_memory());
    if (!session.program_id().empty()) {
      labels.push_back({"program_id", session.program_id()});
      program.Add(labels, 1);
      labels.pop_back();
    }
    labels.push_back({"direction", "up"});
    bytes.Add(labels, session.bytes_up());
    labels.back().value = "down";
    bytes.Add(labels, session.bytes_down());
    for (const transport::Seat& seat : session.seats()) {
      labels.back() = {"device", std::to_string(seat.device())};
      held.Add(labels, seat.held());
      closed.Add(labels, seat.closed() ? 1 : 0);
    }
  }
}

}  // namespace longwire::daemon
