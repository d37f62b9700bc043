#include "server/daemon/sessions/session_record.h"

#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

constexpr size_t kMaxName = 1024;  // of a program, for people

// The tenant as it is now; one that is gone has its name only, and its sessions end.
std::shared_ptr<const config::Tenant> TenantNamed(const std::string& name,
                                                  const std::string& identity,
                                                  const config::LiveConfig::Snapshot& config) {
  for (const config::Tenant& tenant : config->tenants()) {
    if (tenant.name() == name) return {config, &tenant};
  }
  auto now = FindTenant(config, identity);
  if (now != nullptr && now->name() == name) return now;
  auto gone = std::make_shared<config::Tenant>();
  gone->set_name(name);
  return gone;
}

}  // namespace

ClientDescription ClientOf(const SessionRecord& record,
                           const config::LiveConfig::Snapshot& config) {
  ClientDescription client;
  client.program = record.program;
  client.host = record.host;
  client.pid = record.pid;
  client.descriptors = record.descriptors;
  client.peer.address = record.address;
  client.peer.identity = record.identity;
  client.peer.tenant = TenantNamed(record.tenant, record.identity, config);
  if (record.local) client.peer.uid = record.uid;
  client.claim = record.claim.value_or("");
  client.claimed_bytes = record.claimed_bytes.value_or(0);
  client.program_id = record.program_id.value_or("");
  client.alone = record.alone.value_or(0) != 0;
  client.time_limit = record.time_limit.value_or(0);
  return client;
}

SessionRecord RecordOfClient(const ServerSession& session) {
  const ClientDescription& client = session.client();
  SessionRecord record;
  record.program = client.program.substr(0, kMaxName);
  record.host = client.host.substr(0, kMaxName);
  record.pid = client.pid;
  record.address = client.peer.address;
  record.identity = client.peer.identity;
  record.tenant = client.peer.tenant->name();
  record.local = client.local();
  record.uid = client.peer.uid.value_or(0);
  record.descriptors = client.descriptors;
  record.opened =
      static_cast<uint64_t>(std::chrono::nanoseconds(session.opened().time_since_epoch()).count());
  return record;
}

std::string Encode(const SessionRecord& record) {
  std::vector<std::byte> bytes = message::Pack(record);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool Decode(const std::string& bytes, SessionRecord* record) {
  auto packet = std::as_bytes(std::span(bytes));
  return message::Unpack(packet, record) == wire::WireResult::kOk && record->lanes != 0 &&
         record->lanes <= 1 + wire::kMaxLanes;
}

bool Distribute(const SessionRecord& record, std::vector<wire::Descriptor> descriptors,
                KeptDescriptors* kept) {
  auto next = descriptors.begin();
  bool all = true;
  auto take = [&](wire::Descriptor* to) {
    all &= next != descriptors.end();
    if (all) *to = std::move(*next++);
  };
  take(record.local ? &kept->client : &kept->notes);
  if (record.scheduled) take(&kept->gates);
  if (record.scheduled) take(&kept->bell);
  if (record.limited) take(&kept->host_memory);
  if (record.shares_memory) take(&kept->segment);
  kept->rings.resize(2 * size_t{record.lanes - 1});
  for (wire::Descriptor& ring : kept->rings) take(&ring);
  return all && next == descriptors.end();
}

}  // namespace longwire::daemon
