// Who is next on a device: weighted fair order by virtual time. A tenant's virtual time is the GPU
// time it was charged, divided by its weight; the waiting tenant with the least is first, and of a
// tenant's gangs the one that waits longest. All steps are O(log tenants).
//
// The queue's clock is the least virtual time among those that want the device. A tenant that comes
// back is moved up to it, so being idle earns no credit; what it owes beyond, it keeps owing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/types.h"

namespace longwire::scheduler {

struct Gang;
struct Tenant;

class FairQueue {
 public:
  // Lines the gang up; its arrival number must be unique. Remove: before its tenant changes.
  void Push(Gang& gang);
  void Remove(Gang& gang);
  Gang* Front() const;
  bool empty() const { return lines_.empty(); }
  size_t size() const { return size_; }

  // The tenant has the device now, by this order; until Stop it counts among those who want it.
  void Serve(const Tenant& tenant);
  void Stop();
  void Charge(const Tenant& tenant, Time used);

 private:
  struct Share {
    double virtual_time = 0;            // nanoseconds by weight
    std::map<uint64_t, Gang*> waiting;  // by arrival
  };
  // Virtual time and the tenant's id: what orders the shares that have somebody waiting.
  using Line = std::pair<double, uint64_t>;

  // Applies `change` to the share and keeps its line in order.
  template <class Change>
  void Update(uint64_t tenant, Change change);
  // Moves the clock on to the least virtual time of those who want the device now.
  void AdvanceClock();

  // Kept for tenants that are away, so that leaving forgives no debt; as many as are configured.
  std::unordered_map<uint64_t, Share> shares_;
  std::set<Line> lines_;
  size_t size_ = 0;
  double clock_ = 0;
  const Share* serving_ = nullptr;
};

}  // namespace longwire::scheduler
