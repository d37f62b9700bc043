// The pool as etcd has it: its keys as records, and as the planner sees them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/pool/pool.h"
#include "server/etcd/mirror.h"
#include "server/pool/accounts.h"

namespace longwire::pool {

struct HostEntry {
  Host host;
  int64_t host_created = 0;  // revision; 0: it is not in the pool now
  Capacity capacity;
  int64_t capacity_changed = 0;
  Load load;
  // Why it is not understood; empty: it is. Nothing is placed there.
  std::string unknown_host, unknown_capacity;
  const std::string& unknown() const {
    return unknown_host.empty() ? unknown_capacity : unknown_host;
  }
  std::optional<Withdrawal> withdrawn;  // by an administrator
};

struct Waiter {
  std::string front, number;
  Request request;
  int64_t created = 0, changed = 0, lease = 0;  // of its key
  std::string unknown;                          // as HostEntry: it is refused
};

struct Directory {
  // Becomes what these keys say. Only those are read that have changed since the last time: of a
  // thousand hosts, that is all but a few.
  void Update(const etcd::Mirror::Keys& keys);

  uint64_t epoch = 0;
  int64_t epoch_changed = 0;                   // revision; 0: there is none
  std::map<std::string, HostEntry> hosts;      // by name
  std::map<std::string, Claims> claims;        // by host
  std::map<std::string, std::string> owners;   // session's number → host
  std::map<std::string, Waiter> waiters;       // by key
  std::map<std::string, std::string> answers;  // key → its value
  std::string placer;                          // who places; empty: nobody
  int64_t placer_created = 0, placer_lease = 0;

 private:
  void Put(const std::string& key, const etcd::pb::KeyValue& kv);
  void Erase(const std::string& key);
  void PutHostKey(const std::string& key, const etcd::pb::KeyValue& kv);
  void EraseHostKey(const std::string& key);

  std::map<std::string, int64_t> read_;  // key → the revision at which it was read
};

uint64_t ReadEpoch(const std::string& value);
// Why nothing may be placed at all: etcd was restored, and a host has not written yet what runs
// there. Empty: it may.
std::string WhyHalted(const Directory& directory);
// What cannot be read is left out: nothing is placed there.
Directory ReadDirectory(const etcd::Mirror::Keys& keys);

// Those that are in the pool now.
std::vector<scheduler::pool::HostState> HostStates(const Directory& directory);
scheduler::pool::Wish WishOf(const Waiter& waiter);

}  // namespace longwire::pool
