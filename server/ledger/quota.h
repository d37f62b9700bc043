// The memory limit of each tenant, over all its sessions and all devices of the host: one table in
// shared memory, made by the warden and charged by every keeper before it lends. Limits are exact,
// because checking and charging is one step under a lock, and cheap, because no messages are
// needed.
//
// When a keeper dies, what it had charged stays until its successor has counted what is lent
// (SetCharged). The lock survives the death of its holder.
//
// A session that moves to another device has a worker on each of them for a while. Its tenant is
// charged for the larger of the two, and not for both (BeginMove).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "wire/socket.h"

namespace longwire::keeper {

struct LedgerSeat {
  uint64_t worker = 0;  // 0: nobody's
  int32_t device = 0;
};

struct LedgerHolder {
  uint64_t worker = 0;  // 0: nobody's
  uint64_t had = 0;     // bytes that its tenant was charged for it before
};

class TenantLedger {
 public:
  static constexpr uint32_t kTenants = 1024;  // tenant 0: no tenant, no limit
  static constexpr int32_t kDevices = 64;
  static constexpr size_t kMoves = 64;  // at once; what moves beyond counts twice
  using Seat = LedgerSeat;
  using Holder = LedgerHolder;

  static std::unique_ptr<TenantLedger> Create();
  static std::unique_ptr<TenantLedger> Map(wire::Descriptor memory);  // nullptr: not a ledger
  ~TenantLedger();

  // In bytes; UINT64_MAX: no limit. If more than the limit is charged already, nothing is added
  // until enough was refunded.
  void SetLimit(uint32_t tenant, uint64_t bytes);
  uint64_t limit(uint32_t tenant);
  uint64_t charged(uint32_t tenant);
  // Bytes that the tenant may still lease, for this worker.
  uint64_t room(uint32_t tenant, Holder holder = {});

  // A limit that is a part of one over a pool of hosts: it may be raised up to `ceiling`, so
  // whoever needs more waits a moment for it; `spare` bytes of that no host has now. 0, 0: it is
  // none.
  void SetPool(uint32_t tenant, uint64_t ceiling, uint64_t spare);
  uint64_t ceiling(uint32_t tenant);  // the limit, if it is no part
  // As room, with what is spare.
  uint64_t room_with_spare(uint32_t tenant, Holder holder = {});
  // Notes that it would have `more` bytes; false where waiting for them makes no sense.
  bool Want(uint32_t tenant, uint64_t more, Holder holder = {});
  // The most that was noted since the last call; 0: nothing.
  uint64_t TakeWanted(uint32_t tenant);

  // Bytes of each device that are reserved for this tenant.
  void SetReservation(uint32_t tenant, uint64_t bytes);
  uint64_t reservation(uint32_t tenant);
  // Bytes of the device that are reserved for other tenants and not leased by them.
  uint64_t ReservedForOthers(uint32_t tenant, int32_t device);

  // Sessions of a latency-critical tenant are never swapped out.
  void SetLatencyCritical(uint32_t tenant, bool yes);
  bool latency_critical(uint32_t tenant);

  // False: the limit would be exceeded, and nothing was charged. `anyway`: beyond the limit, too.
  bool Charge(uint32_t tenant, int32_t device, uint64_t bytes, bool anyway = false,
              Holder holder = {});
  void Refund(uint32_t tenant, int32_t device, uint64_t bytes, Holder holder = {});
  void ForgetDevice(int32_t device);
  // What is charged on the device from now on, by tenant; nothing to others.
  void SetCharged(int32_t device, const std::map<uint32_t, uint64_t>& charged);

  // The tenant's worker `to` becomes what `from` is, until one of them has ended (EndMoves) and has
  // nothing more. Until its keeper says what `from` has, that is as much as `to`.
  void BeginMove(uint32_t tenant, Seat from, Seat to);
  void EndMoves(uint64_t worker);
  // What workers of the device that move have; others have nothing.
  void SetMoving(int32_t device, const std::map<uint64_t, uint64_t>& by_worker);
  // It has nothing more.
  void Left(uint64_t worker);

  int descriptor() const { return memory_.get(); }

 private:
  struct Move;
  struct Table;
  class Locked;
  TenantLedger() = default;
  // The lock is held.
  uint64_t Sum(uint32_t tenant) const;
  uint64_t Room(uint32_t tenant, uint64_t limit, Holder holder) const;
  // What can be charged for the worker beside the limit, as its other side has so much more.
  uint64_t Ahead(uint32_t tenant, Holder holder) const;
  void Set(uint64_t worker, uint64_t bytes);

  wire::Descriptor memory_;
  Table* table_ = nullptr;
};

// A chunk pool charges it before it lends and refunds it on return. Workers without a tenant (those
// started ahead of need) have no limit.
class Quota {
 public:
  // `enforced` is false only to prove that the quota's test can fail.
  Quota(TenantLedger& ledger, int32_t device, bool enforced)
      : ledger_(ledger), device_(device), enforced_(enforced) {}

  void Assign(uint64_t worker, uint32_t tenant) { workers_[worker] = {tenant, 0}; }
  void Forget(uint64_t worker);
  bool Charge(uint64_t worker, uint64_t bytes, bool anyway = false);
  void Refund(uint64_t worker, uint64_t bytes);
  uint64_t limit(uint64_t worker) { return ledger_.limit(TenantOf(worker)); }
  uint64_t reservation(uint64_t worker) { return ledger_.reservation(TenantOf(worker)); }
  bool latency_critical(uint64_t worker) { return ledger_.latency_critical(TenantOf(worker)); }
  uint64_t ceiling(uint64_t worker) { return ledger_.ceiling(TenantOf(worker)); }
  bool Want(uint64_t worker, uint64_t more) {
    return ledger_.Want(TenantOf(worker), more, HolderOf(worker));
  }
  uint64_t room(uint64_t worker) {
    return enforced_ ? ledger_.room(TenantOf(worker), HolderOf(worker)) : UINT64_MAX;
  }
  uint64_t room_with_spare(uint64_t worker) {
    return enforced_ ? ledger_.room_with_spare(TenantOf(worker), HolderOf(worker)) : UINT64_MAX;
  }
  uint64_t ReservedForOthers(uint64_t worker) {
    return enforced_ ? ledger_.ReservedForOthers(TenantOf(worker), device_) : 0;
  }
  uint32_t TenantOf(uint64_t worker) const;  // 0: nobody's
  // What all workers of the device have, in bytes.
  void SetCharged(const std::map<uint64_t, uint64_t>& by_worker);

 private:
  struct Worker {
    uint32_t tenant = 0;
    uint64_t charged = 0;  // to it
  };
  TenantLedger::Holder HolderOf(uint64_t worker) const;

  TenantLedger& ledger_;
  const int32_t device_;
  const bool enforced_;
  std::map<uint64_t, Worker> workers_;
};

}  // namespace longwire::keeper
