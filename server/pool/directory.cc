#include "server/pool/directory.h"

#include <cstdlib>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

void ReadPlacer(const etcd::pb::KeyValue& kv, Directory* directory) {
  Placer placer;
  directory->placer_created = kv.create_revision();
  directory->placer_lease = kv.lease();
  directory->placer = Decode(kv.value(), &placer) ? placer.host() : "?";
}

void ReadHostKeys(const std::string& key, const etcd::pb::KeyValue& kv, Directory* directory) {
  const std::string name = LastPart(key);
  HostEntry& entry = directory->hosts[name];
  if (key.starts_with(kHosts)) {
    if (Decode(kv.value(), &entry.host)) entry.host_created = kv.create_revision();
  } else if (key.starts_with(kCapacities)) {
    if (Decode(kv.value(), &entry.capacity)) entry.capacity_changed = kv.mod_revision();
  } else if (!Decode(kv.value(), &entry.load)) {
    entry.load.Clear();
  }
}

void ReadWaiter(const std::string& key, const etcd::pb::KeyValue& kv, Directory* directory) {
  Waiter waiter;
  waiter.front = MiddlePart(kQueue, key);
  waiter.number = LastPart(key);
  waiter.created = kv.create_revision();
  waiter.changed = kv.mod_revision();
  waiter.lease = kv.lease();
  if (Decode(kv.value(), &waiter.request)) directory->waiters.push_back(std::move(waiter));
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

Directory ReadDirectory(const etcd::Mirror::Keys& keys) {
  Directory directory;
  for (const auto& [key, kv] : keys) {
    if (key == kPlacer) {
      ReadPlacer(kv, &directory);
    } else if (key == kEpoch) {
      directory.epoch = ReadEpoch(kv.value());
      directory.epoch_changed = kv.mod_revision();
    } else if (key.starts_with(kHosts) || key.starts_with(kCapacities) || key.starts_with(kLoads)) {
      ReadHostKeys(key, kv, &directory);
    } else if (key.starts_with(kClaims)) {
      Claim claim;
      if (Decode(kv.value(), &claim))
        directory.claims[MiddlePart(kClaims, key)][LastPart(key)] = claim;
    } else if (key.starts_with(kSessions)) {
      Owner owner;
      directory.owners[LastPart(key)] = Decode(kv.value(), &owner) ? owner.host() : "?";
    } else if (key.starts_with(kQueue)) {
      ReadWaiter(key, kv, &directory);
    } else if (key.starts_with(kAnswers)) {
      directory.answers[key] = kv.value();
    }
  }
  return directory;
}

std::vector<scheduler::pool::HostState> HostStates(const Directory& directory) {
  std::vector<scheduler::pool::HostState> states;
  for (const auto& [name, entry] : directory.hosts) {
    const Capacity& capacity = entry.capacity;
    // Of another incarnation: the host is just writing what is so.
    if (entry.host_created == 0 || entry.capacity_changed == 0 ||
        entry.host.incarnation() != capacity.incarnation()) {
      continue;
    }
    scheduler::pool::HostState& state = states.emplace_back();
    state.name = name;
    state.labels = {entry.host.labels().begin(), entry.host.labels().end()};
    state.sessions = capacity.sessions();
    state.sessions_limit = capacity.sessions_limit();
    state.cordoned = capacity.cordoned();
    for (const Device& device : capacity.devices()) {
      scheduler::pool::DeviceState& to = state.devices.emplace_back();
      to.ordinal = device.ordinal();
      to.total = device.total();
      to.promised = device.bytes();
      to.sessions = device.sessions();
      to.cordoned = device.cordoned();
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
  wish.devices = request.devices();
  wish.bytes = request.bytes();
  wish.labels = {request.labels().begin(), request.labels().end()};
  wish.only = request.only();
  wish.avoid = {request.avoid().begin(), request.avoid().end()};
  wish.priority = request.priority();
  wish.age = static_cast<uint64_t>(waiter.created);
  wish.wait = request.wait();
  wish.limit = request.time_limit();
  wish.program = request.program();
  return wish;
}

}  // namespace longwire::pool
