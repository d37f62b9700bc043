// Who is next on a device. Each tenant has a *virtual time*: the GPU time it was charged, divided
// by its weight. The clock is the mean, by weight, of all that compete for the device; a tenant
// behind it is owed the difference. Of those that are not ahead of the clock the one comes first
// whose next turn, by the length of its turns of late, ends earliest in virtual time (earliest
// eligible virtual deadline first). So nobody gets further from its share than by about one turn,
// its own or another's, however long one tenant's kernels are beside another's.
//
// A tenant competes while it wants the device, and for `claim` longer: in a gap so short, between a
// program's wait and its next launch, it goes on earning. When the gap gets longer, it is as if it
// had left when the gap began: it keeps what it was owed or owed then, and earns nothing.
//
// All steps are O(tenants that compete on the device).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scheduler/types.h"

namespace longwire::scheduler {

struct Gang;
struct Tenant;

class FairQueue {
 public:
  // Before all else: how long a gap keeps the claim. The usual turn, too.
  void SetClaim(Time claim) { claim_ = claim; }
  // The time of all that follows. What was used until then has to be charged first.
  void Advance(Time now);

  // Lines the gang up; its arrival number must be unique. Remove: before its tenant changes.
  void Push(Gang& gang);
  void Remove(Gang& gang);
  // The longest waiting gang of the tenant that is next; null if nobody waits.
  Gang* Front() const;
  // The longest waiting gang of each tenant that has any.
  std::vector<Gang*> Waiting() const;
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The tenant has the device now, or for another turn; until Stop it counts among those who want
  // it.
  void Serve(const Tenant& tenant);
  void Stop();
  // Negative: it was charged too much before.
  void Charge(const Tenant& tenant, Time used);

  // Whether the tenant that is served would be next again if it lined up, although it is owed no
  // more than `slack` of GPU time. Not if another gang of it waits.
  bool ServedIsNext(Time slack) const;

 private:
  struct Share {
    const Tenant* tenant = nullptr;
    bool competes = false;
    double virtual_time = 0;  // nanoseconds by weight; while it competes
    double owed = 0;          // virtual time behind the clock when it went idle
    Time idle_since = kForever;
    Time turn{0};                       // what its turns take, of late
    Time this_turn{0};                  // what the one that it has took so far
    std::map<uint64_t, Gang*> waiting;  // by arrival
  };

  Share& ShareOf(const Tenant& tenant);
  bool Wants(const Share& share) const { return &share == serving_ || !share.waiting.empty(); }
  double Clock() const;
  // It wants the device from now on, or no longer.
  void Join(Share& share);
  void Leave(Share& share);
  Time LongestTurn() const;
  void BoundWhatIsOwed();
  const Share* Next(const Share* served) const;
  using Place = std::tuple<bool, double, bool, uint64_t>;
  Place PlaceOf(const Share& share, double clock) const;

  // Kept for tenants that are away, as many as are configured.
  std::unordered_map<uint64_t, Share> shares_;
  std::vector<Share*> competing_;
  size_t size_ = 0;
  Time now_{0};
  Time claim_{0};
  double last_clock_ = 0;  // when nobody competed any more
  Share* serving_ = nullptr;
};

}  // namespace longwire::scheduler
