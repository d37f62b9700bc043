// On which host of a pool a session goes, and who waits: a snapshot of hosts and wishes in,
// decisions out. No clock, no thread, no network.
//
// Order: by class (the priority, and one more for who has waited long); within one, of the tenant
// that has least of the pool for its weight the oldest (order.h). The first wish of a class that
// fits nowhere gets an earmark: a host where least is missing. Others, of whatever class, go there
// only if no more is missing for it then, or if their time limit ends before it can be ready. So
// endless small sessions cannot starve a large one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace longwire::scheduler::pool {

using Labels = std::map<std::string, std::string>;

struct DeviceState {
  int32_t ordinal = 0;
  uint64_t total = 0;     // bytes that can be promised
  uint64_t promised = 0;  // of these
  uint32_t sessions = 0;
  bool cordoned = false;
  double busy = 0;                  // 0 to 1, of late
  uint64_t free_seen = UINT64_MAX;  // bytes that its host found free of late: a hint
  uint64_t ends = 0;                // when all its sessions have ended by their limits; or kNever
  bool alone = false;               // one session has it to itself
};

// What a tenant's sessions have been promised.
struct Held {
  uint64_t sessions = 0;
  uint64_t bytes = 0;
};

// Versions of the protocol that somebody speaks; 0: not known.
struct Protocols {
  uint32_t oldest = 0, newest = 0;
  bool operator==(const Protocols&) const = default;
};

struct HostState {
  std::string name;
  std::string closed;  // why nothing can be placed there, of one that is not understood
  Protocols protocols;
  Labels labels;
  uint32_t sessions = 0;
  uint32_t sessions_limit = 0;
  // Of one tenant, where of_tenants has none of its own, and of one identity; 0: no limit.
  uint32_t sessions_of_tenant = 0, sessions_of_identity = 0;
  std::map<std::string, uint32_t> of_tenants;
  bool cordoned = false;
  bool gives_alone = false;  // it knows devices that one session has to itself
  std::vector<DeviceState> devices;
  std::set<std::string> programs;              // KindOf those that run there
  std::set<std::string> images;                // of modules, in its cache
  std::map<std::string, Held> held;            // by tenant
  std::map<std::string, uint32_t> identities;  // sessions of each
};

struct Wish {
  std::string number;  // of the session
  std::string tenant;
  std::string identity;
  uint32_t devices = 1;
  // The most hosts it may have; where several are needed, each part has its devices to itself.
  uint32_t hosts = 1;
  uint64_t bytes = 0;  // on each device; 0: the program did not say
  Labels labels;
  std::string only;                // the one host that will do; empty: any
  std::vector<std::string> avoid;  // hosts that will not
  uint32_t priority = 0;
  uint32_t weight = 1;  // of its tenant
  uint64_t age = 0;     // lower: older
  uint64_t waited = 0;  // seconds
  uint64_t limit = 0;   // seconds after which its session is ended; 0: it has no limit
  bool wait = false;    // else it is refused where it fits nowhere now
  std::string program;
  std::vector<std::string> images;  // that it has used before, as far as known
  Protocols protocols;
};

enum class Outcome { kPlaced, kWaits, kRefused };

// Of a program on several hosts, what it gets at one.
struct Part {
  std::string host;
  std::vector<int32_t> devices;
  uint64_t bytes = 0;  // promised on each
};

struct Decision {
  size_t wish = 0;  // its index
  Outcome outcome = Outcome::kWaits;
  std::string host;              // of one that is placed
  std::vector<int32_t> devices;  // likewise
  uint64_t bytes = 0;            // likewise: promised on each
  std::vector<Part> more;        // of one that is placed on several hosts: the others
  uint32_t place = 0;            // in the queue, from 1 on, of one that waits
  std::string reason;            // a sentence for its user, of one that is not placed
};

// A time that does not come.
inline constexpr uint64_t kNever = UINT64_MAX;

struct Options {
  std::string policy = "least_loaded";  // or pack, spread, affinity
  uint64_t patience = 30 * 60;          // seconds; who has waited so long is a class higher
  size_t waiting_of_tenant = 100;
};

// When each tenant of a class was served last, as numbers that count up.
using Turns = std::map<std::pair<uint32_t, std::string>, uint64_t>;

// What a session is promised that did not say: its first lease. Less on smaller devices.
inline constexpr uint64_t kLeastBytes = uint64_t{64} << 20;

class Planner {
 public:
  explicit Planner(Options options) : options_(std::move(options)) {}
  explicit Planner(std::string policy) { options_.policy = std::move(policy); }

  // One decision for each wish, but for those behind the `most`th that is placed: they come next
  // time. `now`: seconds of the clock that DeviceState::ends is of.
  std::vector<Decision> Plan(std::vector<HostState> hosts, const std::vector<Wish>& wishes,
                             size_t most, uint64_t now = 0);

  // Number of a waiting session → the host that is kept for it.
  std::map<std::string, std::string> earmarks() const;

 private:
  struct Kept {
    std::string host;
    uint64_t until = 0;  // who passes it ends before that; 0: nobody has passed it
  };

  Options options_;
  std::map<std::string, Kept> kept_;  // by number
  Turns turns_;
  uint64_t served_ = 0;
};

// Parts of Plan, for those who explain it.

// What is promised to the wish on this device.
uint64_t Need(const Wish& wish, const DeviceState& device);
// Why the host never serves the wish; empty: it could, if it were empty.
std::string Obstacle(const Wish& wish, const HostState& host);
// Why the host has no session for the wish now; empty: it may have one. `own`: only for a limit of
// its tenant's or its identity's sessions there.
std::string WhyFull(const Wish& wish, const HostState& host, bool own = false);
// What is missing on the devices that lack least. Only of a host without an obstacle.
struct Lack {
  uint64_t bytes = 0;
  int32_t device = 0;
};
std::vector<Lack> LacksOf(const Wish& wish, const HostState& host);
// All of it, and more where its sessions are full; 0: it fits now.
uint64_t Lacks(const Wish& wish, const HostState& host);
// The devices that the wish gets there by the policy; empty if it does not fit now. `by_hints`: nor
// by what the host saw.
std::vector<int32_t> ChooseDevices(const Wish& wish, const HostState& host,
                                   const std::string& policy, bool by_hints);
// Whether `one` is the better host for the wish by the policy; both have room.
bool IsBefore(const Wish& wish, const HostState& one, const HostState& other,
              const std::string& policy);
// How many of the images that the wish has used the host has in its cache.
size_t CachedFor(const Wish& wish, const HostState& host);
// As its claim does. `alone`: it has the devices to itself.
void Take(const Wish& wish, const std::vector<int32_t>& devices, HostState* host,
          bool alone = false);
// Of a wish that fits no single host: what each of several gives, the fewest that do (apart.cc).
// `may`: whether a host may give these; empty if they do not suffice.
using MayGive = std::function<bool(const HostState&, const std::vector<int32_t>&)>;
std::vector<Part> ChooseApart(const Wish& wish, const std::vector<HostState>& hosts,
                              const std::string& policy, const MayGive& may);
// How many devices of the hosts could be parts of it now.
size_t FreeApart(const Wish& wish, const std::vector<HostState>& hosts);
// Its priority, and one more if it has waited for `patience`.
uint32_t ClassOf(const Wish& wish, uint64_t patience);
// Of which a host has cached what it loads: the same program of the same tenant.
std::string KindOf(const std::string& tenant, const std::string& program);
// What the wish is promised in all.
uint64_t BytesOf(const Wish& wish);
// The order in which wishes are served if each gets what it asks for: their indices. `first`:
// numbers that come before the others of their class.
std::vector<size_t> OrderOf(const std::vector<HostState>& hosts, const std::vector<Wish>& wishes,
                            const Turns& turns = {}, const std::set<std::string>& first = {},
                            uint64_t patience = Options().patience);

}  // namespace longwire::scheduler::pool
