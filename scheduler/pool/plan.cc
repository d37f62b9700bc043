// The pass over all wishes: who is placed, who waits and for what.
#include <algorithm>
#include <set>
#include <tuple>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

constexpr size_t kEarmarks = 2;

// A wish that waits first of its priority, and the host kept for it.
struct Earmark {
  const Wish* wish;
  HostState* host;
};

// All that is going on in one pass.
struct Pass {
  std::vector<HostState>& hosts;
  const std::string& policy;
  std::vector<Earmark> earmarks;
  std::set<uint32_t> earmarked;  // priorities
};

// Whom it would take room from there; nullptr: nobody.
const Wish* Blocker(const Pass& pass, const Wish& wish, const HostState& host,
                    const std::vector<int32_t>& devices) {
  for (const Earmark& earmark : pass.earmarks) {
    if (earmark.host != &host) continue;
    HostState after = host;
    Take(wish, devices, &after);
    if (Lacks(*earmark.wish, after) > Lacks(*earmark.wish, host)) return earmark.wish;
  }
  return nullptr;
}

std::string Sentence(const Wish& wish, const std::string& why) {
  return "the pool has no room for " + std::to_string(wish.devices) +
         (wish.devices == 1 ? " device" : " devices") + " of this program now: " + why;
}

// Why it fits nowhere, of each kind of host once.
std::string Reasons(const Pass& pass, const Wish& wish, const std::string& blocked) {
  if (pass.hosts.empty()) return Sentence(wish, "no host is in the pool");
  std::string text;
  for (const HostState& host : pass.hosts) {
    if (!wish.only.empty() && host.name != wish.only) continue;
    constexpr size_t kLongest = 600;
    if (text.size() > kLongest) {
      text += "; and so on";
      break;
    }
    std::string why = Obstacle(wish, host);
    if (why.empty() && host.sessions >= host.sessions_limit) {
      why = "it has all of its " + std::to_string(host.sessions_limit) + " sessions";
    } else if (why.empty() && Lacks(wish, host) != 0) {
      why = std::to_string((Lacks(wish, host) + (1 << 20) - 1) >> 20) + " MiB are missing";
    } else if (why.empty()) {
      why = blocked.empty() ? "its devices are taken" : "it is kept for " + blocked;
    }
    text += (text.empty() ? "" : "; ") + host.name + ": " + why;
  }
  return Sentence(wish, text.empty() ? "host " + wish.only + " is not in the pool" : text);
}

struct Found {
  HostState* host = nullptr;
  std::vector<int32_t> devices;
  std::string blocked;  // by whose earmark, where that is what hinders
};

// The devices that an earmark counts on are taken last.
std::vector<int32_t> ChooseBeside(const Pass& pass, const Wish& wish, const HostState& host,
                                  bool by_hints) {
  HostState others = host;
  for (const Earmark& earmark : pass.earmarks) {
    if (earmark.host != &host) continue;
    for (const Lack& lack : LacksOf(*earmark.wish, host)) {
      for (DeviceState& device : others.devices) device.cordoned |= device.ordinal == lack.device;
    }
  }
  std::vector<int32_t> devices = ChooseDevices(wish, others, pass.policy, by_hints);
  return devices.empty() ? ChooseDevices(wish, host, pass.policy, by_hints) : devices;
}

Found Find(const Pass& pass, const Wish& wish) {
  Found best;
  // Where a host has seen less memory free than was left of it, it goes if nowhere else.
  for (bool by_hints : {true, false}) {
    for (HostState& host : pass.hosts) {
      if (!Obstacle(wish, host).empty()) continue;
      std::vector<int32_t> devices = ChooseBeside(pass, wish, host, by_hints);
      if (devices.empty()) continue;
      if (const Wish* blocker = Blocker(pass, wish, host, devices)) {
        best.blocked = "an older or more important program of tenant '" + blocker->tenant + "'";
        continue;
      }
      if (best.host == nullptr || IsBefore(host, *best.host, pass.policy)) {
        best.host = &host;
        best.devices = std::move(devices);
      }
    }
    if (best.host != nullptr) break;
  }
  return best;
}

// The host where least is missing; the one that it has stays unless another lacks less.
HostState* EarmarkFor(const Pass& pass, const Wish& wish, const std::string& before) {
  HostState* best = nullptr;
  auto key = [&](const HostState& host) {
    return std::tuple(Lacks(wish, host), host.name != before, host.name);
  };
  for (HostState& host : pass.hosts) {
    if (!Obstacle(wish, host).empty()) continue;
    const bool taken = std::ranges::any_of(
        pass.earmarks, [&](const Earmark& earmark) { return earmark.host == &host; });
    if (!taken && (best == nullptr || key(host) < key(*best))) best = &host;
  }
  return best;
}

}  // namespace

std::vector<size_t> OrderOf(const std::vector<Wish>& wishes) {
  std::vector<size_t> order(wishes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return wishes[i].age; });
  // Which one of its tenant's it is, within its priority.
  std::map<std::pair<uint32_t, std::string>, uint32_t> counts;
  std::vector<uint32_t> turn(wishes.size());
  for (size_t i : order) turn[i] = counts[{wishes[i].priority, wishes[i].tenant}]++;
  std::ranges::sort(order, {}, [&](size_t i) {
    return std::tuple(-static_cast<int64_t>(wishes[i].priority), turn[i], wishes[i].age, i);
  });
  return order;
}

std::vector<Decision> Planner::Plan(std::vector<HostState> hosts, const std::vector<Wish>& wishes,
                                    size_t most) {
  Pass pass{hosts, policy_, {}, {}};
  std::vector<Decision> decisions;
  std::map<std::string, std::string> earmarks;
  uint32_t waiting = 0;
  for (size_t index : OrderOf(wishes)) {
    if (most == 0) break;
    const Wish& wish = wishes[index];
    Decision decision;
    decision.wish = index;
    Found found = Find(pass, wish);
    if (found.host != nullptr) {
      decision.outcome = Outcome::kPlaced;
      decision.host = found.host->name;
      for (const DeviceState& device : found.host->devices) {
        if (std::ranges::count(found.devices, device.ordinal) == 0) continue;
        decision.bytes = std::max(decision.bytes, Need(wish, device));
      }
      Take(wish, found.devices, found.host);
      decision.devices = std::move(found.devices);
      --most;
    } else {
      decision.reason = Reasons(pass, wish, found.blocked);
      decision.outcome = wish.wait ? Outcome::kWaits : Outcome::kRefused;
    }
    if (decision.outcome == Outcome::kWaits) {
      decision.place = ++waiting;
      const bool first =
          pass.earmarks.size() < kEarmarks && !pass.earmarked.contains(wish.priority);
      auto before = earmarks_.find(wish.number);
      HostState* host =
          first ? EarmarkFor(pass, wish, before == earmarks_.end() ? "" : before->second) : nullptr;
      if (host != nullptr) {
        pass.earmarks.push_back({&wish, host});
        pass.earmarked.insert(wish.priority);
        earmarks[wish.number] = host->name;
      }
    }
    decisions.push_back(std::move(decision));
  }
  // A pass that was cut short has not seen all who wait.
  if (most != 0) earmarks_ = std::move(earmarks);
  return decisions;
}

}  // namespace longwire::scheduler::pool
