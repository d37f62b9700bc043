#include "server/pool/forget.h"

#include <algorithm>
#include <map>

#include "server/pool/accounts.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

constexpr int kAtOnce = 30;  // claims in one transaction

// Those of the host's claims, some at a time; cap/H stays their sum. `changed`: cap/H's revision.
bool ForgetClaims(etcd::Client& client, const std::string& host, Capacity capacity,
                  int64_t* changed, size_t* count, std::string* sentence) {
  const std::string folder = Key(kClaims, host) + "/";
  while (true) {
    etcd::pb::RangeRequest read;
    etcd::pb::RangeResponse found;
    read.set_key(folder);
    read.set_range_end(etcd::EndOfPrefix(folder));
    read.set_limit(kAtOnce);
    if (!client.Range(read, &found, sentence)) return false;
    if (found.kvs_size() == 0) return true;
    etcd::pb::TxnRequest request;
    etcd::pb::TxnResponse reply;
    *request.add_compare() = etcd::Absent(Key(kHosts, host));
    *request.add_compare() = etcd::ChangedAt(Key(kCapacities, host), *changed);
    for (const etcd::pb::KeyValue& kv : found.kvs()) {
      Claim claim;
      if (Decode(kv.value(), &claim)) GiveBack(claim, &capacity);
      *request.add_success() = etcd::DeleteOp(kv.key());
      *request.add_success() = etcd::DeleteOp(Key(kSessions, LastPart(kv.key())));
    }
    *request.add_success() = etcd::PutOp(Key(kCapacities, host), Encode(capacity));
    if (!client.Txn(request, &reply, sentence)) return false;
    *sentence = "the host '" + host + "' has just come back; nothing more is forgotten";
    if (!reply.succeeded()) return false;
    *changed = reply.header().revision();
    *count += static_cast<size_t>(found.kvs_size());
  }
}

// Its parts of tenants' memory are everybody's again.
bool ForgetParts(etcd::Client& client, const std::string& host, std::string* sentence) {
  etcd::pb::RangeRequest read;
  etcd::pb::RangeResponse found;
  read.set_key(std::string(kTenants));
  read.set_range_end(etcd::EndOfPrefix(std::string(kTenants)));
  if (!client.Range(read, &found, sentence)) return false;
  std::map<std::string, etcd::pb::KeyValue> keys;
  for (const etcd::pb::KeyValue& kv : found.kvs()) keys[kv.key()] = kv;
  for (const auto& [key, kv] : keys) {
    const std::string tenant_key = key.substr(0, key.rfind('/'));
    Part part;
    Tenant tenant;
    if (LastPart(key) != host || !keys.contains(tenant_key) || !Decode(kv.value(), &part) ||
        !Decode(keys[tenant_key].value(), &tenant)) {
      continue;
    }
    tenant.set_parts(tenant.parts() - std::min(tenant.parts(), part.bytes()));
    etcd::pb::TxnRequest request;
    etcd::pb::TxnResponse reply;
    *request.add_compare() = etcd::Absent(Key(kHosts, host));
    *request.add_compare() = etcd::ChangedAt(tenant_key, keys[tenant_key].mod_revision());
    *request.add_success() = etcd::DeleteOp(key);
    *request.add_success() = etcd::PutOp(tenant_key, Encode(tenant));
    if (!client.Txn(request, &reply, sentence)) return false;
    *sentence = "the parts of tenants' memory are just changing; say it again";
    if (!reply.succeeded()) return false;
  }
  return true;
}

}  // namespace

bool Forget(etcd::Client& client, const std::string& host, std::string* sentence) {
  etcd::pb::TxnRequest read;
  etcd::pb::TxnResponse found;
  *read.add_success() = etcd::ReadOp(Key(kHosts, host));
  *read.add_success() = etcd::ReadOp(Key(kCapacities, host));
  *read.add_success() =
      etcd::ReadOp(std::string(kDevices), etcd::EndOfPrefix(std::string(kDevices)));
  if (!client.Txn(read, &found, sentence)) return false;
  *sentence = "etcd's answer cannot be understood";
  if (found.responses_size() != 3) return false;
  *sentence = "the host '" + host +
              "' is in the pool: its sessions run. To take it out, stop "
              "longwired there first; nothing is forgotten";
  if (found.responses(0).response_range().kvs_size() != 0) return false;
  *sentence = "the pool knows no host '" + host + "'; longwire status --pool lists them";
  const auto& kept = found.responses(1).response_range();
  Capacity capacity;
  if (kept.kvs_size() == 0) return false;
  *sentence = Key(kCapacities, host) + " in etcd is no record of this version; upgrade longwired";
  if (!Decode(kept.kvs(0).value(), &capacity)) return false;
  int64_t changed = kept.kvs(0).mod_revision();
  size_t claims = 0;
  if (!ForgetParts(client, host, sentence)) return false;
  if (!ForgetClaims(client, host, capacity, &changed, &claims, sentence)) return false;
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_compare() = etcd::Absent(Key(kHosts, host));
  *request.add_compare() = etcd::ChangedAt(Key(kCapacities, host), changed);
  *request.add_success() = etcd::DeleteOp(Key(kCapacities, host));
  *request.add_success() = etcd::DeleteOp(Key(kWithdrawn, host));
  for (const etcd::pb::KeyValue& kv : found.responses(2).response_range().kvs()) {
    if (kv.value().starts_with(host + " ")) *request.add_success() = etcd::DeleteOp(kv.key());
  }
  if (!client.Txn(request, &reply, sentence)) return false;
  *sentence = "the host '" + host + "' has just come back; nothing more is forgotten";
  if (!reply.succeeded()) return false;
  *sentence = "the host '" + host + "' and " + std::to_string(claims) + " claims are forgotten";
  return true;
}

}  // namespace longwire::pool
