#include "server/pool/new_claims.h"

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

Claim ClaimAt(const Directory& directory, const Waiter& waiter, const scheduler::pool::Part& part) {
  Claim claim;
  claim.set_tenant(waiter.request.tenant());
  claim.set_identity(waiter.request.identity());
  claim.set_program(waiter.request.program());
  claim.set_ticket_hash(waiter.request.ticket_hash());
  claim.set_bytes(part.bytes);
  claim.set_time_limit(waiter.request.time_limit());
  if (waiter.request.has_from()) *claim.mutable_from() = waiter.request.from();
  claim.set_incarnation(directory.hosts.at(part.host).capacity.incarnation());
  for (int32_t device : part.devices) claim.add_devices(device);
  return claim;
}

}  // namespace

std::vector<NewClaim> NewClaimsOf(const Directory& directory, const Waiter& waiter,
                                  const scheduler::pool::Decision& decision) {
  std::vector<scheduler::pool::Part> parts = {{decision.host, decision.devices, decision.bytes}};
  parts.insert(parts.end(), decision.more.begin(), decision.more.end());
  std::vector<NewClaim> claims;
  for (size_t i = 0; i < parts.size(); ++i) {
    NewClaim& one = claims.emplace_back();
    one.host = parts[i].host;
    one.number = NumberOfPlace(waiter.number, i);
    one.claim = ClaimAt(directory, waiter, parts[i]);
    if (i != 0) one.claim.set_ticket_hash(waiter.request.further_hashes(static_cast<int>(i) - 1));
  }
  if (claims.size() == 1) return claims;
  for (NewClaim& one : claims) {
    one.claim.set_alone(true);
    for (const NewClaim& each : claims) {
      Place& place = *one.claim.add_places();
      place.set_host(each.host);
      place.set_number(each.number);
      place.set_devices(static_cast<uint32_t>(each.claim.devices_size()));
    }
  }
  return claims;
}

void Write(const NewClaim& claim, etcd::pb::TxnRequest* request) {
  Owner owner;
  owner.set_host(claim.host);
  owner.set_generation(1);
  const std::string claim_key = Key(kClaims, claim.host, claim.number);
  const std::string session_key = Key(kSessions, claim.number);
  *request->add_compare() = etcd::Absent(claim_key);
  *request->add_compare() = etcd::Absent(session_key);
  if (claim.claim.has_from()) {
    const Place& from = claim.claim.from();
    *request->add_compare() = etcd::Present(Key(kClaims, from.host(), from.number()));
  }
  *request->add_success() = etcd::PutOp(claim_key, Encode(claim.claim));
  *request->add_success() = etcd::PutOp(session_key, Encode(owner));
}

void TellPlaces(const Directory& directory, const std::vector<NewClaim>& claims, Answer* answer) {
  const NewClaim& first = claims.front();
  answer->set_host(first.host);
  answer->set_address(directory.hosts.at(first.host).host.address());
  for (const Place& place : first.claim.places()) {
    Place& told = *answer->add_places();
    told = place;
    told.set_address(directory.hosts.at(place.host()).host.address());
  }
}

std::string WhyNotFrom(const Directory& directory, const Waiter& waiter) {
  if (!waiter.request.has_from()) return {};
  const Place& from = waiter.request.from();
  auto host = directory.claims.find(from.host());
  if (host != directory.claims.end() && from.host() == waiter.front) {
    auto claim = host->second.find(from.number());
    if (claim != host->second.end() && claim->second.identity() == waiter.request.identity() &&
        claim->second.tenant() == waiter.request.tenant()) {
      return {};
    }
  }
  return "the pool does not have the place from which the session is to move";
}

bool AnswerOf(const Directory& directory, const Waiter& waiter, const std::string& owner,
              Answer* answer) {
  auto claims = directory.claims.find(owner);
  if (claims == directory.claims.end()) return false;
  auto found = claims->second.find(waiter.number);
  if (found == claims->second.end() || !directory.hosts.contains(owner)) return false;
  const Claim& claim = found->second;
  if (claim.identity() != waiter.request.identity() ||
      claim.ticket_hash() != waiter.request.ticket_hash()) {
    return false;
  }
  for (const Place& place : claim.places()) {
    if (!directory.hosts.contains(place.host())) return false;
  }
  TellPlaces(directory, {{owner, waiter.number, claim}}, answer);
  return true;
}

}  // namespace longwire::pool
