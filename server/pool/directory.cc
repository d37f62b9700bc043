#include "server/pool/directory.h"

#include <algorithm>
#include <cstdlib>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

bool IsOfHost(const std::string& key) {
  return key.starts_with(kHosts) || key.starts_with(kCapacities) || key.starts_with(kLoads) ||
         key.starts_with(kWithdrawn);
}

// Why a record is not understood; empty: it is. `read`: whether it could be read at all.
template <class Record>
std::string WhyUnknown(const std::string& key, bool read, const Record& record) {
  if (!read) return "its " + key + " in etcd cannot be read by this version";
  if (record.format() <= kRecordFormat) return {};
  return "its " + key + " in etcd is of a newer version (format " +
         std::to_string(record.format()) + "; the placer reads " + std::to_string(kRecordFormat) +
         "); upgrade the servers that place sessions";
}

Waiter WaiterOf(const std::string& key, const etcd::pb::KeyValue& kv) {
  Waiter waiter;
  waiter.front = MiddlePart(kQueue, key);
  waiter.number = LastPart(key);
  waiter.created = kv.create_revision();
  waiter.changed = kv.mod_revision();
  waiter.lease = kv.lease();
  waiter.unknown = WhyUnknown(key, Decode(kv.value(), &waiter.request), waiter.request);
  return waiter;
}

}  // namespace

uint64_t ReadEpoch(const std::string& value) { return std::strtoull(value.c_str(), nullptr, 10); }

std::string WhyHalted(const Directory& directory) {
  for (const auto& [name, entry] : directory.hosts) {
    if (entry.capacity_changed == 0 || entry.capacity.epoch() == directory.epoch) continue;
    return "etcd was restored from an older copy, and the host '" + name +
           "' has not said yet what runs there; if it is gone for good, an administrator says: "
           "longwire admin forget " +
           name;
  }
  return {};
}

void Directory::PutHostKey(const std::string& key, const etcd::pb::KeyValue& kv) {
  HostEntry& entry = hosts[LastPart(key)];
  if (key.starts_with(kHosts)) {
    entry.unknown_host = WhyUnknown(key, Decode(kv.value(), &entry.host), entry.host);
    entry.host_created = kv.create_revision();
  } else if (key.starts_with(kCapacities)) {
    const bool read = Decode(kv.value(), &entry.capacity);
    entry.unknown_capacity = WhyUnknown(key, read, entry.capacity);
    entry.capacity_changed = read ? kv.mod_revision() : 0;
  } else if (key.starts_with(kWithdrawn)) {
    // One that cannot be read takes the host out of service, too.
    if (!Decode(kv.value(), &entry.withdrawn.emplace())) entry.withdrawn->Clear();
  } else if (!Decode(kv.value(), &entry.load)) {
    entry.load.Clear();
  }
}

void Directory::EraseHostKey(const std::string& key) {
  auto found = hosts.find(LastPart(key));
  if (found == hosts.end()) return;
  HostEntry& entry = found->second;
  if (key.starts_with(kHosts)) {
    entry.host.Clear();
    entry.unknown_host.clear();
    entry.host_created = 0;
  } else if (key.starts_with(kCapacities)) {
    entry.capacity.Clear();
    entry.unknown_capacity.clear();
    entry.capacity_changed = 0;
  } else if (key.starts_with(kWithdrawn)) {
    entry.withdrawn.reset();
  } else {
    entry.load.Clear();
  }
  auto there = [&](std::string_view folder) { return read_.contains(Key(folder, found->first)); };
  if (!there(kHosts) && !there(kCapacities) && !there(kLoads) && !there(kWithdrawn)) {
    hosts.erase(found);
  }
}

void Directory::Put(const std::string& key, const etcd::pb::KeyValue& kv) {
  if (key == kPlacer) {
    Placer record;
    placer_created = kv.create_revision();
    placer_lease = kv.lease();
    placer = Decode(kv.value(), &record) ? record.host() : "?";
  } else if (key == kEpoch) {
    epoch = ReadEpoch(kv.value());
    epoch_changed = kv.mod_revision();
  } else if (IsOfHost(key)) {
    PutHostKey(key, kv);
  } else if (key.starts_with(kClaims)) {
    Claim claim;
    if (Decode(kv.value(), &claim)) {
      claims[MiddlePart(kClaims, key)][LastPart(key)] = std::move(claim);
    } else {
      Erase(key);
    }
  } else if (key.starts_with(kSessions)) {
    Owner owner;
    owners[LastPart(key)] = Decode(kv.value(), &owner) ? owner.host() : "?";
  } else if (key.starts_with(kQueue)) {
    waiters[key] = WaiterOf(key, kv);
  } else if (key.starts_with(kAnswers)) {
    answers[key] = kv.value();
  }
}

void Directory::Erase(const std::string& key) {
  if (key == kPlacer) {
    placer.clear();
    placer_created = placer_lease = 0;
  } else if (key == kEpoch) {
    epoch = 0;
    epoch_changed = 0;
  } else if (IsOfHost(key)) {
    EraseHostKey(key);
  } else if (key.starts_with(kClaims)) {
    auto of_host = claims.find(MiddlePart(kClaims, key));
    if (of_host == claims.end()) return;
    of_host->second.erase(LastPart(key));
    if (of_host->second.empty()) claims.erase(of_host);
  } else if (key.starts_with(kSessions)) {
    owners.erase(LastPart(key));
  } else if (key.starts_with(kQueue)) {
    waiters.erase(key);
  } else if (key.starts_with(kAnswers)) {
    answers.erase(key);
  }
}

void Directory::Update(const etcd::Mirror::Keys& keys) {
  auto known = read_.begin();
  for (const auto& [key, kv] : keys) {
    while (known != read_.end() && known->first < key) {
      const std::string gone = known->first;
      known = read_.erase(known);
      Erase(gone);
    }
    const bool is_known = known != read_.end() && known->first == key;
    if (!is_known || known->second != kv.mod_revision()) Put(key, kv);
    if (is_known) {
      known++->second = kv.mod_revision();
    } else {
      read_.emplace_hint(known, key, kv.mod_revision());
    }
  }
  while (known != read_.end()) {
    const std::string gone = known->first;
    known = read_.erase(known);
    Erase(gone);
  }
}

Directory ReadDirectory(const etcd::Mirror::Keys& keys) {
  Directory directory;
  directory.Update(keys);
  return directory;
}

std::vector<scheduler::pool::HostState> HostStates(const Directory& directory) {
  std::vector<scheduler::pool::HostState> states;
  for (const auto& [name, entry] : directory.hosts) {
    const Capacity& capacity = entry.capacity;
    if (entry.host_created != 0 && !entry.unknown().empty()) {
      scheduler::pool::HostState& state = states.emplace_back();
      state.name = name;
      state.closed = entry.unknown();
      continue;
    }
    // Of another incarnation: the host is just writing what is so.
    if (entry.host_created == 0 || entry.capacity_changed == 0 ||
        entry.host.incarnation() != capacity.incarnation()) {
      continue;
    }
    scheduler::pool::HostState& state = states.emplace_back();
    state.name = name;
    state.labels = {entry.host.labels().begin(), entry.host.labels().end()};
    state.protocols = {entry.host.oldest_protocol(), entry.host.newest_protocol()};
    state.gives_alone = entry.host.gives_alone();
    state.sessions = capacity.sessions();
    state.sessions_limit = capacity.sessions_limit();
    state.cordoned = capacity.cordoned() || entry.withdrawn;
    state.sessions_of_tenant = capacity.sessions_of_tenant();
    for (const Capacity::OfTenant& one : capacity.of_tenants()) {
      state.of_tenants[one.tenant()] = one.sessions();
    }
    state.sessions_of_identity = capacity.sessions_of_identity();
    for (const Device& device : capacity.devices()) {
      scheduler::pool::DeviceState& to = state.devices.emplace_back();
      to.ordinal = device.ordinal();
      to.total = device.total();
      to.promised = device.bytes();
      to.sessions = device.sessions();
      to.cordoned = device.cordoned();
      to.alone = device.alone();
      for (const Load::Of& load : entry.load.devices()) {
        if (load.ordinal() != device.ordinal()) continue;
        to.busy = load.busy();
        to.free_seen = load.free_bytes();
      }
    }
  }
  return states;
}

scheduler::pool::Wish WishOf(const Waiter& waiter) {
  const Request& request = waiter.request;
  scheduler::pool::Wish wish;
  wish.number = waiter.number;
  wish.tenant = request.tenant();
  wish.identity = request.identity();
  wish.devices = request.devices();
  wish.hosts = 1 + static_cast<uint32_t>(request.further_hashes_size());
  wish.bytes = request.bytes();
  wish.labels = {request.labels().begin(), request.labels().end()};
  wish.only = request.only();
  wish.avoid = {request.avoid().begin(), request.avoid().end()};
  wish.priority = request.priority();
  wish.weight = std::max(1u, request.weight());
  wish.age = static_cast<uint64_t>(waiter.created);
  wish.wait = request.wait();
  wish.limit = request.time_limit();
  wish.program = request.program();
  wish.protocols = {request.oldest_protocol(), request.newest_protocol()};
  return wish;
}

}  // namespace longwire::pool
