#include "server/pool/limits.h"

#include <algorithm>

#include "server/pool/keys.h"

namespace longwire::pool {

namespace {

// Of a session that moves: it has the claim from before, too, which counts.
bool HasBoth(const Directory& directory, const Claim& claim) {
  if (!claim.has_from()) return false;
  auto host = directory.claims.find(claim.from().host());
  return host != directory.claims.end() && host->second.contains(claim.from().number());
}

}  // namespace

Counts CountSessions(const Directory& directory) {
  Counts counts;
  for (const auto& [host, claims] : directory.claims) {
    for (const auto& [number, claim] : claims) {
      if (!HasBoth(directory, claim)) ++counts[claim.tenant()];
    }
  }
  return counts;
}

uint64_t SessionsLeft(const TenantLimits& limits, const Counts& counts, const std::string& tenant) {
  auto limit = limits.find(tenant);
  if (limit == limits.end() || limit->second.sessions == 0) return UINT64_MAX;
  auto count = counts.find(tenant);
  const uint64_t has = count == counts.end() ? 0 : count->second;
  return limit->second.sessions - std::min(limit->second.sessions, has);
}

std::string WhyFull(const TenantLimits& limits, const Counts& counts, const std::string& tenant) {
  if (SessionsLeft(limits, counts, tenant) != 0) return {};
  return "the tenant '" + tenant + "' has " + std::to_string(counts.at(tenant)) +
         " sessions in the pool already; its limit there is " +
         std::to_string(limits.at(tenant).sessions);
}

bool WriteLimits(etcd::Client& client, const TenantLimits& limits, int64_t elected,
                 std::string* sentence) {
  for (const auto& [name, limit] : limits) {
    // A host may change its part meanwhile.
    for (bool done = false; !done;) {
      etcd::pb::RangeRequest read;
      etcd::pb::RangeResponse found;
      read.set_key(Key(kTenants, name));
      if (!client.Range(read, &found, sentence)) return false;
      Tenant tenant;
      const bool known = found.kvs_size() != 0;
      if (known && !Decode(found.kvs(0).value(), &tenant)) {
        *sentence = read.key() + " in etcd is no record of this version; upgrade longwired";
        return false;
      }
      if (known && tenant.sessions() == limit.sessions && tenant.memory() == limit.memory) break;
      tenant.set_sessions(limit.sessions);
      tenant.set_memory(limit.memory);
      etcd::pb::TxnRequest request;
      etcd::pb::TxnResponse reply;
      *request.add_compare() = etcd::CreatedAt(std::string(kPlacer), elected);
      *request.add_compare() = etcd::ChangedAt(read.key(), known ? found.kvs(0).mod_revision() : 0);
      *request.add_success() = etcd::PutOp(read.key(), Encode(tenant));
      *request.add_failure() = etcd::ReadOp(std::string(kPlacer));
      if (!client.Txn(request, &reply, sentence)) return false;
      done = reply.succeeded();
      if (done || reply.responses_size() != 1) continue;
      const auto& placer = reply.responses(0).response_range();
      *sentence = "another host is the placer";
      if (placer.kvs_size() == 0 || placer.kvs(0).create_revision() != elected) return false;
    }
  }
  return true;
}

}  // namespace longwire::pool
