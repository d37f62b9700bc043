// How much device memory each tenant may have, over all its sessions and all devices of the host:
// one table in shared memory, made by the warden, charged by every keeper before it lends. Exact
// because a charge is made and checked under one lock, and cheap because no process asks another.
//
// A keeper that dies takes its device's memory with it: the warden forgets what was charged there
// (ForgetDevice), and the lock survives its holder's death.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "wire/socket.h"

namespace longwire::keeper {

class TenantLedger {
 public:
  static constexpr uint32_t kTenants = 1024;  // tenant 0 is nobody's and has no limit
  static constexpr int32_t kDevices = 64;

  static std::unique_ptr<TenantLedger> Create();
  static std::unique_ptr<TenantLedger> Map(wire::Descriptor memory);  // nullptr: it is no ledger
  ~TenantLedger();

  // In bytes; UINT64_MAX: no limit. More than the limit may be charged already: then nothing is
  // added until enough came back.
  void SetLimit(uint32_t tenant, uint64_t bytes);
  uint64_t limit(uint32_t tenant);
  uint64_t charged(uint32_t tenant);
  // What the tenant may still have.
  uint64_t room(uint32_t tenant);

  // Bytes of each device that only this tenant may have.
  void SetReservation(uint32_t tenant, uint64_t bytes);
  uint64_t reservation(uint32_t tenant);
  // Of the device, the reserved bytes that other tenants do not have yet.
  uint64_t ReservedForOthers(uint32_t tenant, int32_t device);

  // Memory of a latency-critical tenant's sessions is never moved away.
  void SetLatencyCritical(uint32_t tenant, bool yes);
  bool latency_critical(uint32_t tenant);

  // False: that would be more than the limit, and nothing was charged.
  bool Charge(uint32_t tenant, int32_t device, uint64_t bytes);
  void Refund(uint32_t tenant, int32_t device, uint64_t bytes);
  void ForgetDevice(int32_t device);

  int descriptor() const { return memory_.get(); }

 private:
  struct Table;
  class Locked;
  TenantLedger() = default;
  uint64_t Sum(uint32_t tenant) const;  // the lock is held

  wire::Descriptor memory_;
  Table* table_ = nullptr;
};

// What a chunk pool asks before it lends and tells when bytes come back. Workers without a tenant
// (started ahead of need, nobody's yet) have no limit.
class Quota {
 public:
  // `enforced` is false only to show that the quota's test can fail.
  Quota(TenantLedger& ledger, int32_t device, bool enforced)
      : ledger_(ledger), device_(device), enforced_(enforced) {}

  void Assign(uint64_t worker, uint32_t tenant) { tenants_[worker] = tenant; }
  void Forget(uint64_t worker) { tenants_.erase(worker); }
  bool Charge(uint64_t worker, uint64_t bytes);
  void Refund(uint64_t worker, uint64_t bytes);
  uint64_t limit(uint64_t worker) { return ledger_.limit(TenantOf(worker)); }
  uint64_t reservation(uint64_t worker) { return ledger_.reservation(TenantOf(worker)); }
  bool latency_critical(uint64_t worker) { return ledger_.latency_critical(TenantOf(worker)); }
  uint64_t room(uint64_t worker) { return enforced_ ? ledger_.room(TenantOf(worker)) : UINT64_MAX; }
  uint64_t ReservedForOthers(uint64_t worker) {
    return enforced_ ? ledger_.ReservedForOthers(TenantOf(worker), device_) : 0;
  }
  uint32_t TenantOf(uint64_t worker) const;  // 0: nobody's

 private:
  TenantLedger& ledger_;
  const int32_t device_;
  const bool enforced_;
  std::map<uint64_t, uint32_t> tenants_;  // by worker
};

}  // namespace longwire::keeper
