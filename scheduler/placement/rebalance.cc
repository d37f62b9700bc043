#include "scheduler/placement/rebalance.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace longwire::scheduler {
namespace {

// Of the whole search: some tens of milliseconds.
constexpr uint64_t kStepsLimit = 200'000;
constexpr size_t kSetsLimit = 4'096;  // of devices that are tried

bool MayMove(const Occupant& one) {
  return one.best_effort && !one.stays && !(one.moved && *one.moved < kRestAfterMove);
}

using Set = std::vector<size_t>;  // indices of devices, ascending

// All sets of `count` of the devices that are large enough.
std::vector<Set> SetsOf(std::span<const DeviceLoad> devices, const PlacementRequest& request) {
  std::vector<size_t> large;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].total_bytes >= request.bytes) large.push_back(i);
  }
  std::vector<Set> sets;
  if (request.devices == 0 || large.size() < request.devices) return sets;
  std::vector<bool> taken(large.size());
  std::fill_n(taken.begin(), request.devices, true);
  do {
    Set& set = sets.emplace_back();
    for (size_t i = 0; i < large.size(); ++i) {
      if (taken[i]) set.push_back(large[i]);
    }
  } while (std::prev_permutation(taken.begin(), taken.end()) && sets.size() < kSetsLimit);
  return sets;
}

class Search {
 public:
  Search(std::span<const DeviceLoad> devices, std::span<const Occupant> occupants,
         const PlacementRequest& request)
      : devices_(devices), occupants_(occupants), request_(request) {}

  RebalancePlan Run() {
    std::vector<Set> sets = SetsOf(devices_, request_);
    // What lacks little first: its plans bound the others.
    std::ranges::stable_sort(sets, {}, [this](const Set& set) { return Lacking(set); });
    for (const Set& set : sets) Try(set);
    return best_;
  }

 private:
  struct Cost {
    uint64_t bytes = 0;
    size_t sessions = 0;
    auto operator<=>(const Cost&) const = default;
  };

  uint64_t Lacking(size_t device) const {
    return request_.bytes - std::min(request_.bytes, devices_[device].free_bytes);
  }
  uint64_t Lacking(const Set& set) const {
    uint64_t sum = 0;
    for (size_t device : set) sum += Lacking(device);
    return sum;
  }

  void Try(const Set& set) {
    set_ = &set;
    lacking_.clear();
    free_.clear();
    candidates_.clear();
    for (size_t i = 0; i < devices_.size(); ++i) {
      const bool wanted = std::ranges::count(set, i) != 0;
      lacking_.push_back(wanted ? Lacking(i) : 0);
      free_.push_back(wanted ? 0 : devices_[i].free_bytes);
    }
    for (const Occupant& one : occupants_) {
      const size_t device = IndexOf(one.device);
      if (MayMove(one) && device < devices_.size() && lacking_[device] != 0) {
        candidates_.push_back({&one, device});
      }
    }
    // The largest first: few moves, and what does not fit anywhere is seen soon. The same ones
    // stand side by side.
    std::ranges::stable_sort(candidates_, std::greater(), [](const Candidate& one) {
      return std::tuple(one.occupant->room, one.occupant->bytes, one.device);
    });
    moves_.clear();
    cost_ = {};
    Decide(0);
  }

  struct Candidate {
    const Occupant* occupant;
    size_t device;
  };

  size_t IndexOf(DeviceId id) const {
    return static_cast<size_t>(std::ranges::find(devices_, id, &DeviceLoad::id) - devices_.begin());
  }

  // Whether the candidates from there on can make up for what is lacking.
  bool CanSuffice(size_t from) const {
    for (size_t device : *set_) {
      uint64_t sum = 0;
      for (size_t i = from; i < candidates_.size(); ++i) {
        if (candidates_[i].device == device) sum += candidates_[i].occupant->room;
      }
      if (sum < lacking_[device]) return false;
    }
    return true;
  }

  bool IsTheSame(size_t one, size_t other) const {
    const Candidate &a = candidates_[one], &b = candidates_[other];
    return a.device == b.device && a.occupant->room == b.occupant->room &&
           a.occupant->bytes == b.occupant->bytes;
  }

  void Decide(size_t at) {
    if (++steps_ > kStepsLimit || (found_ && cost_ >= best_cost_)) return;
    if (std::ranges::all_of(*set_, [this](size_t device) { return lacking_[device] == 0; })) {
      return Keep();
    }
    if (at == candidates_.size() || !CanSuffice(at)) return;
    const Candidate& one = candidates_[at];
    if (lacking_[one.device] != 0) MoveIt(one, at);
    // Of those that are alike, one that stays lets the others stay, too.
    size_t next = at + 1;
    while (next < candidates_.size() && IsTheSame(at, next)) ++next;
    Decide(next);
  }

  void MoveIt(const Candidate& one, size_t at) {
    std::map<uint64_t, size_t> places;  // by what is free there: equal ones are tried once
    for (size_t i = devices_.size(); i-- > 0;) {
      if (free_[i] >= one.occupant->room && std::ranges::count(*set_, i) == 0) places[free_[i]] = i;
    }
    const uint64_t lacked = lacking_[one.device];
    lacking_[one.device] -= std::min(lacked, one.occupant->room);
    const Cost before = cost_;
    cost_ = {cost_.bytes + one.occupant->bytes, cost_.sessions + 1};
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      free_[place->second] -= one.occupant->room;
      moves_.push_back({one.occupant->session, devices_[place->second].id});
      Decide(at + 1);
      moves_.pop_back();
      free_[place->second] += one.occupant->room;
    }
    cost_ = before;
    lacking_[one.device] = lacked;
  }

  void Keep() {
    found_ = true;
    best_cost_ = cost_;
    best_.moves = moves_;
    best_.devices.clear();
    for (size_t device : *set_) best_.devices.push_back(devices_[device].id);
  }

  const std::span<const DeviceLoad> devices_;
  const std::span<const Occupant> occupants_;
  const PlacementRequest request_;
  const Set* set_ = nullptr;       // the devices that are tried
  std::vector<uint64_t> lacking_;  // bytes, by device
  std::vector<uint64_t> free_;     // likewise, for those that move
  std::vector<Candidate> candidates_;
  std::vector<SessionMove> moves_;
  Cost cost_, best_cost_;
  bool found_ = false;
  uint64_t steps_ = 0;
  RebalancePlan best_;
};

}  // namespace

RebalancePlan PlanRebalance(std::span<const DeviceLoad> devices,
                            std::span<const Occupant> occupants, const PlacementRequest& request) {
  return Search(devices, occupants, request).Run();
}

}  // namespace longwire::scheduler
