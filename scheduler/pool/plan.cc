// The pass over all wishes: who is placed, who waits and for what.
#include <algorithm>
#include <set>
#include <tuple>

#include "scheduler/pool/order.h"
#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

constexpr size_t kEarmarks = 2;

// A wish that waits first of its class, and the host kept for it.
struct Earmark {
  const Wish* wish;
  HostState* host;
  uint64_t until = 0;  // who passes it ends before that; 0: nobody has passed it
};

// A wish that found no place. A pass only takes room, so whoever needs as much or more on such
// hosts finds none either, but on the hosts that had room and are kept for others.
struct Hopeless {
  const Wish* wish;
  bool own;  // for its own limit somewhere, which others do not have
  std::vector<HostState*> kept;
};

// All that is going on in one pass.
struct Pass {
  std::vector<HostState>& hosts;
  const Options& options;
  uint64_t now;
  std::vector<Earmark> earmarks;
  std::vector<Hopeless> hopeless = {};
};

// When the earmark can be ready, by the limits of the sessions that are in its way.
uint64_t ReadyAt(const Earmark& earmark) {
  uint64_t ready = 0;
  for (const Lack& lack : LacksOf(*earmark.wish, *earmark.host)) {
    if (lack.bytes == 0) continue;
    for (const DeviceState& device : earmark.host->devices) {
      if (device.ordinal == lack.device) ready = std::max(ready, device.ends);
    }
  }
  return ready == 0 ? kNever : ready;  // its sessions are full: nobody knows
}

// What is in its way may have no limit; then the first that passes says until when others may.
uint64_t PassesUntil(const Pass& pass, const Wish& wish, const Earmark& earmark) {
  if (earmark.until != 0) return earmark.until;
  return std::min(ReadyAt(earmark), pass.now + wish.limit);
}

bool MayPass(const Pass& pass, const Wish& wish, const Earmark& earmark) {
  return wish.limit != 0 && pass.now + wish.limit <= PassesUntil(pass, wish, earmark);
}

bool TakesFrom(const Earmark& earmark, const Wish& wish, const HostState& host,
               const std::vector<int32_t>& devices, bool alone) {
  if (earmark.host != &host || earmark.wish == &wish) return false;
  HostState after = host;
  Take(wish, devices, &after, alone);
  return Lacks(*earmark.wish, after) > Lacks(*earmark.wish, host);
}

// Whom it would take room from there; nullptr: nobody, or who is ready later than it ends.
const Wish* Blocker(const Pass& pass, const Wish& wish, const HostState& host,
                    const std::vector<int32_t>& devices, bool alone = false) {
  for (const Earmark& earmark : pass.earmarks) {
    if (TakesFrom(earmark, wish, host, devices, alone) && !MayPass(pass, wish, earmark)) {
      return earmark.wish;
    }
  }
  return nullptr;
}

std::string Sentence(const Wish& wish, const std::string& why) {
  return "the pool has no room for " + std::to_string(wish.devices) +
         (wish.devices == 1 ? " device" : " devices") + " of this program now: " + why;
}

// On several hosts it has devices to itself.
std::string WhyNotApart(const Pass& pass, const Wish& wish) {
  const size_t free = FreeApart(wish, pass.hosts);
  return "on several hosts: " + std::to_string(free) + " devices that nobody uses" +
         (free < wish.devices
              ? ""
              : ", but kept for others, or on more than " + std::to_string(wish.hosts) + " hosts");
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
    if (why.empty()) why = WhyFull(wish, host);
    if (why.empty() && Lacks(wish, host) != 0) {
      why = std::to_string((Lacks(wish, host) + (1 << 20) - 1) >> 20) + " MiB are missing";
    } else if (why.empty()) {
      why = blocked.empty() ? "its devices are taken" : "it is kept for " + blocked;
    }
    text += (text.empty() ? "" : "; ") + host.name + ": " + why;
  }
  if (wish.hosts > 1 && wish.devices > 1 && wish.only.empty())
    text += "; " + WhyNotApart(pass, wish);
  return Sentence(wish, text.empty() ? "host " + wish.only + " is not in the pool" : text);
}

struct Found {
  HostState* host = nullptr;
  std::vector<int32_t> devices;
  std::string blocked;      // by whose earmark, where that is what hinders
  std::vector<Part> parts;  // where no host alone has room
};

HostState* HostNamed(Pass& pass, const std::string& name) {
  return &*std::ranges::find(pass.hosts, name, &HostState::name);
}

// The devices that an earmark counts on are taken last.
std::vector<int32_t> ChooseBeside(const Pass& pass, const Wish& wish, const HostState& host,
                                  bool by_hints) {
  const bool is_kept = std::ranges::any_of(pass.earmarks, [&](const Earmark& earmark) {
    return earmark.host == &host && earmark.wish != &wish;
  });
  if (!is_kept) return ChooseDevices(wish, host, pass.options.policy, by_hints);
  HostState others = host;
  for (const Earmark& earmark : pass.earmarks) {
    if (earmark.host != &host || earmark.wish == &wish) continue;
    for (const Lack& lack : LacksOf(*earmark.wish, host)) {
      for (DeviceState& device : others.devices) device.cordoned |= device.ordinal == lack.device;
    }
  }
  std::vector<int32_t> devices = ChooseDevices(wish, others, pass.options.policy, by_hints);
  return devices.empty() ? ChooseDevices(wish, host, pass.options.policy, by_hints) : devices;
}

bool NeedsAsMuch(const Wish& wish, const Wish& other) {
  return wish.devices >= other.devices && wish.bytes >= other.bytes && wish.only == other.only &&
         wish.labels == other.labels && wish.avoid == other.avoid &&
         wish.protocols == other.protocols;
}

// Where it is worth looking.
std::vector<HostState*> HostsFor(const Pass& pass, const Wish& wish) {
  for (const Hopeless& one : pass.hopeless) {
    if (one.own && (wish.tenant != one.wish->tenant || wish.identity != one.wish->identity)) {
      continue;
    }
    if (NeedsAsMuch(wish, *one.wish)) return one.kept;
  }
  std::vector<HostState*> hosts;
  for (HostState& host : pass.hosts) {
    if (Obstacle(wish, host).empty()) hosts.push_back(&host);
  }
  return hosts;
}

Found Find(Pass& pass, const Wish& wish) {
  Found best;
  const std::vector<HostState*> hosts = HostsFor(pass, wish);
  std::vector<HostState*> kept;
  // Where a host has seen less memory free than was left of it, it goes if nowhere else.
  for (bool by_hints : {true, false}) {
    kept.clear();
    for (HostState* host : hosts) {
      if (!Obstacle(wish, *host).empty()) continue;
      std::vector<int32_t> devices = ChooseBeside(pass, wish, *host, by_hints);
      if (devices.empty()) continue;
      if (const Wish* blocker = Blocker(pass, wish, *host, devices)) {
        best.blocked = "an older or more important program of tenant '" + blocker->tenant + "'";
        kept.push_back(host);
        continue;
      }
      if (best.host == nullptr || IsBefore(wish, *host, *best.host, pass.options.policy)) {
        best.host = host;
        best.devices = std::move(devices);
      }
    }
    if (best.host != nullptr) return best;
  }
  if (wish.devices != 0 && hosts.size() > kept.size()) {
    const bool own = std::ranges::any_of(
        hosts, [&](const HostState* host) { return !WhyFull(wish, *host, true).empty(); });
    pass.hopeless.push_back({&wish, own, std::move(kept)});
  }
  return best;
}

// Where no host alone has room: what each of several gives.
std::vector<Part> FindApart(Pass& pass, const Wish& wish) {
  return ChooseApart(wish, pass.hosts, pass.options.policy,
                     [&](const HostState& host, const std::vector<int32_t>& devices) {
                       return Blocker(pass, wish, host, devices, true) == nullptr;
                     });
}

// The host where least is missing; the one that it has stays unless another lacks less.
HostState* EarmarkFor(const Pass& pass, const Wish& wish, const std::string& before) {
  HostState* best = nullptr;
  auto key = [&](const HostState& host) {
    return std::tuple(Lacks(wish, host), host.name != before, host.name);
  };
  for (HostState& host : pass.hosts) {
    // Nobody keeps free for a tenant what its own limit does not let it have.
    if (!Obstacle(wish, host).empty() || !WhyFull(wish, host, true).empty()) continue;
    const bool taken = std::ranges::any_of(
        pass.earmarks, [&](const Earmark& earmark) { return earmark.host == &host; });
    if (!taken && (best == nullptr || key(host) < key(*best))) best = &host;
  }
  return best;
}

// The first of its class that waits has a host kept for it.
void Keep(Pass& pass, const Wish& wish) {
  const auto class_of = [&](const Wish& one) { return ClassOf(one, pass.options.patience); };
  const bool is_kept = std::ranges::any_of(pass.earmarks, [&](const Earmark& earmark) {
    return earmark.wish == &wish || class_of(*earmark.wish) == class_of(wish);
  });
  if (is_kept || pass.earmarks.size() >= kEarmarks) return;
  HostState* host = EarmarkFor(pass, wish, "");
  if (host != nullptr) pass.earmarks.push_back({&wish, host, 0});
}

// Those that nobody has made wait yet, where their tenant has enough in the queue: by number.
std::set<std::string> TooMany(const std::vector<Wish>& wishes, size_t most) {
  std::map<std::string, std::vector<std::pair<uint64_t, std::string>>> tenants;
  for (const Wish& wish : wishes) {
    if (wish.wait) tenants[wish.tenant].emplace_back(wish.age, wish.number);
  }
  std::set<std::string> numbers;
  for (auto& [tenant, all] : tenants) {
    std::ranges::sort(all);
    for (size_t i = most; i < all.size(); ++i) numbers.insert(all[i].second);
  }
  return numbers;
}

// What it has been promised on each device there.
uint64_t PlaceAt(Pass& pass, const Wish& wish, HostState* host, const std::vector<int32_t>& devices,
                 bool alone) {
  for (Earmark& earmark : pass.earmarks) {
    if (!TakesFrom(earmark, wish, *host, devices, alone)) continue;
    earmark.until = PassesUntil(pass, wish, earmark);
  }
  Take(wish, devices, host, alone);
  uint64_t bytes = 0;
  for (DeviceState& device : host->devices) {
    if (std::ranges::count(devices, device.ordinal) == 0) continue;
    bytes = std::max(bytes, Need(wish, device));
    device.ends = std::max(device.ends, wish.limit == 0 ? kNever : pass.now + wish.limit);
  }
  return bytes;
}

void Place(Pass& pass, const Wish& wish, Found found, Decision* decision) {
  decision->outcome = Outcome::kPlaced;
  if (found.parts.empty()) {
    decision->host = found.host->name;
    decision->bytes = PlaceAt(pass, wish, found.host, found.devices, false);
    decision->devices = std::move(found.devices);
  } else {
    for (Part& part : found.parts) {
      part.bytes = PlaceAt(pass, wish, HostNamed(pass, part.host), part.devices, true);
    }
    decision->host = found.parts.front().host;
    decision->devices = found.parts.front().devices;
    decision->bytes = found.parts.front().bytes;
    decision->more.assign(found.parts.begin() + 1, found.parts.end());
  }
  std::erase_if(pass.earmarks, [&](const Earmark& earmark) { return earmark.wish == &wish; });
}

// As who waits would be served.
void SetPlaces(const std::vector<size_t>& expected, std::vector<Decision>* decisions) {
  std::map<size_t, Decision*> waiting;
  for (Decision& one : *decisions) {
    if (one.outcome == Outcome::kWaits) waiting[one.wish] = &one;
  }
  uint32_t place = 0;
  for (size_t index : expected) {
    auto one = waiting.find(index);
    if (one != waiting.end()) one->second->place = ++place;
  }
}

}  // namespace

std::map<std::string, std::string> Planner::earmarks() const {
  std::map<std::string, std::string> hosts;
  for (const auto& [number, kept] : kept_) hosts[number] = kept.host;
  return hosts;
}

std::vector<Decision> Planner::Plan(std::vector<HostState> hosts, const std::vector<Wish>& wishes,
                                    size_t most, uint64_t now) {
  Pass pass{hosts, options_, now, {}, {}};
  std::vector<Decision> decisions;
  std::set<std::string> holders;
  for (const auto& [number, kept] : kept_) holders.insert(number);
  const std::vector<size_t> expected = OrderOf(hosts, wishes, turns_, holders, options_.patience);
  // What is kept stays kept, whoever has come meanwhile.
  for (size_t index : expected) {
    auto kept = kept_.find(wishes[index].number);
    if (kept == kept_.end()) continue;
    HostState* host = EarmarkFor(pass, wishes[index], kept->second.host);
    if (host != nullptr) pass.earmarks.push_back({&wishes[index], host, kept->second.until});
  }
  const std::set<std::string> too_many = TooMany(wishes, options_.waiting_of_tenant);
  Order order(hosts, wishes, turns_, holders, options_.patience);
  size_t placed = 0;
  while (most != 0) {
    const auto index = order.Next();
    if (!index) break;
    const Wish& wish = wishes[*index];
    Decision decision;
    decision.wish = *index;
    Found found = Find(pass, wish);
    if (found.host == nullptr) found.parts = FindApart(pass, wish);
    const size_t places = std::max<size_t>(1, found.parts.size());
    // All of its places, or none, are in one transaction.
    if (places > most && placed != 0) break;
    if (found.host != nullptr || !found.parts.empty()) {
      Place(pass, wish, std::move(found), &decision);
      turns_[{ClassOf(wish, options_.patience), wish.tenant}] = ++served_;
      order.Charge(wish);  // who waits has not got anything
      most -= std::min(most, places);
      placed += places;
    } else if (too_many.contains(wish.number)) {
      decision.outcome = Outcome::kRefused;
      decision.reason = "tenant '" + wish.tenant + "' has " +
                        std::to_string(options_.waiting_of_tenant) +
                        " programs in the pool's queue, and no more may wait; try again when some "
                        "of them have been placed";
    } else {
      decision.reason = Reasons(pass, wish, found.blocked);
      decision.outcome = wish.wait ? Outcome::kWaits : Outcome::kRefused;
    }
    if (decision.outcome == Outcome::kWaits) Keep(pass, wish);
    decisions.push_back(std::move(decision));
  }
  SetPlaces(expected, &decisions);
  // A pass that was cut short has not seen all who wait; what it has kept stays.
  kept_.clear();
  for (const Earmark& earmark : pass.earmarks) {
    kept_[earmark.wish->number] = {earmark.host->name, earmark.until};
  }
  constexpr size_t kTurns = 100000;  // tenants are few
  if (turns_.size() > kTurns) turns_.clear();
  return decisions;
}

}  // namespace longwire::scheduler::pool
