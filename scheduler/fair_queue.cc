#include "scheduler/fair_queue.h"

#include <algorithm>

#include "scheduler/state.h"

namespace longwire::scheduler {

namespace {

double Count(Time time) { return static_cast<double>(time.count()); }

// The most GPU time that a tenant can be owed, in longest turns. A tenant with short gaps that
// rarely uses its share must not accumulate minutes of the device.
constexpr double kMaxTurnsOwed = 2;
// Sums of nanoseconds do not come out even.
constexpr double kEven = 1;

}  // namespace

FairQueue::Share& FairQueue::ShareOf(const Tenant& tenant) {
  Share& share = shares_[tenant.id];
  if (share.tenant == nullptr) {
    share.tenant = &tenant;
    share.turn = claim_;
  }
  return share;
}

double FairQueue::Clock() const {
  double sum = 0, weights = 0;
  for (const Share* share : competing_) {
    sum += share->virtual_time * share->tenant->weight;
    weights += share->tenant->weight;
  }
  return weights > 0 ? sum / weights : last_clock_;
}

void FairQueue::Advance(Time now) {
  now_ = now;
  std::erase_if(competing_, [&](Share* share) {
    if (Wants(*share) || After(share->idle_since, claim_) > now_) return false;
    share->competes = false;
    return true;
  });
  BoundWhatIsOwed();
}

Time FairQueue::LongestTurn() const {
  Time longest = claim_;
  for (const Share* share : competing_) {
    longest = std::max({longest, share->turn, share->this_turn});
  }
  return longest;
}

void FairQueue::BoundWhatIsOwed() {
  const double longest = Count(LongestTurn());
  const double clock = Clock();
  for (Share* share : competing_) {
    const double most = kMaxTurnsOwed * longest / share->tenant->weight;
    share->virtual_time = std::max(share->virtual_time, clock - most);
  }
}

void FairQueue::Join(Share& share) {
  share.idle_since = kForever;
  if (share.competes) return;
  double others = 0;
  for (const Share* other : competing_) others += other->tenant->weight;
  // Its own place moves the clock, too: afterwards it is owed what it was.
  const double part = others > 0 ? (others + share.tenant->weight) / others : 1;
  share.virtual_time = Clock() - share.owed * part;
  share.competes = true;
  competing_.push_back(&share);
  BoundWhatIsOwed();
}

void FairQueue::Leave(Share& share) {
  if (!share.competes || Wants(share) || share.idle_since != kForever) return;
  share.idle_since = now_;
  last_clock_ = Clock();
  share.owed = last_clock_ - share.virtual_time;
}

void FairQueue::Push(Gang& gang) {
  Share& share = ShareOf(*gang.tenant);
  share.waiting.emplace(gang.arrival, &gang);
  ++size_;
  Join(share);
}

void FairQueue::Remove(Gang& gang) {
  Share& share = ShareOf(*gang.tenant);
  size_ -= share.waiting.erase(gang.arrival);
  Leave(share);
}

void FairQueue::Serve(const Tenant& tenant) {
  serving_ = &ShareOf(tenant);
  serving_->this_turn = Time{0};
  Join(*serving_);
}

void FairQueue::Stop() {
  if (serving_ == nullptr) return;
  Share& share = *serving_;
  serving_ = nullptr;
  share.turn = std::max(share.this_turn, share.turn - share.turn / 8);
  share.this_turn = Time{0};
  Leave(share);
}

void FairQueue::Charge(const Tenant& tenant, Time used) {
  Share& share = ShareOf(tenant);
  share.virtual_time += Count(used) / tenant.weight;
  if (&share == serving_) share.this_turn += used;
  // It still ran when it had left: that comes off what it is owed.
  if (!Wants(share)) share.owed -= Count(used) / tenant.weight;
}

// Who is least is next: the eligible ones before the others; these by the ends of their turns, the
// others by where they are; and the tenant that has the device already last.
FairQueue::Place FairQueue::PlaceOf(const Share& share, double clock) const {
  const bool ahead = share.virtual_time > clock + kEven;
  const double turn = ahead ? 0 : Count(share.turn) / share.tenant->weight;
  return {ahead, share.virtual_time + turn, &share == serving_, share.tenant->id};
}

// Among those that wait and, if it is not null, the one that is served.
const FairQueue::Share* FairQueue::Next(const Share* served) const {
  const double clock = Clock();
  const Share* next = served;
  for (const Share* share : competing_) {
    if (share->waiting.empty()) continue;
    if (next == nullptr || PlaceOf(*share, clock) < PlaceOf(*next, clock)) next = share;
  }
  return next;
}

Gang* FairQueue::Front() const {
  const Share* next = Next(nullptr);
  return next == nullptr ? nullptr : next->waiting.begin()->second;
}

std::vector<Gang*> FairQueue::Waiting() const {
  std::vector<Gang*> gangs;
  for (const Share* share : competing_) {
    if (!share->waiting.empty()) gangs.push_back(share->waiting.begin()->second);
  }
  return gangs;
}

bool FairQueue::ServedIsNext(Time slack) const {
  if (serving_ == nullptr || !serving_->waiting.empty()) return false;
  const double owed = (Clock() - serving_->virtual_time) * serving_->tenant->weight;
  return owed >= Count(slack) && Next(serving_) == serving_;
}

}  // namespace longwire::scheduler
