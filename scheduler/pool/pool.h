// On which host of a pool a session goes, and who waits: a snapshot of hosts and wishes in,
// decisions out. No clock, no thread, no network.
//
// Order: higher priority first; within one, tenants in turn, each by age. The first wish of a
// priority that fits nowhere gets an earmark: a host where least is missing. Others go there only
// if no more is missing for it then, so endless small sessions cannot starve a large one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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
};

struct HostState {
  std::string name;
  Labels labels;
  uint32_t sessions = 0;
  uint32_t sessions_limit = 0;
  bool cordoned = false;
  std::vector<DeviceState> devices;
};

struct Wish {
  std::string number;  // of the session
  std::string tenant;
  uint32_t devices = 1;
  uint64_t bytes = 0;  // on each device; 0: the program did not say
  Labels labels;
  std::string only;                // the one host that will do; empty: any
  std::vector<std::string> avoid;  // hosts that will not
  uint32_t priority = 0;
  uint64_t age = 0;   // lower: older
  bool wait = false;  // else it is refused where it fits nowhere now
};

enum class Outcome { kPlaced, kWaits, kRefused };

struct Decision {
  size_t wish = 0;  // its index
  Outcome outcome = Outcome::kWaits;
  std::string host;              // of one that is placed
  std::vector<int32_t> devices;  // likewise
  uint64_t bytes = 0;            // likewise: promised on each
  uint32_t place = 0;            // in the queue, from 1 on, of one that waits
  std::string reason;            // a sentence for its user, of one that is not placed
};

// What a session is promised that did not say: its first lease. Less on smaller devices.
inline constexpr uint64_t kLeastBytes = uint64_t{64} << 20;

class Planner {
 public:
  // `policy`: pack, spread or least_loaded.
  explicit Planner(std::string policy) : policy_(std::move(policy)) {}

  // One decision for each wish, but for those behind the `most`th that is placed: they come next
  // time.
  std::vector<Decision> Plan(std::vector<HostState> hosts, const std::vector<Wish>& wishes,
                             size_t most);

  // Number of a waiting session → the host that is kept for it.
  const std::map<std::string, std::string>& earmarks() const { return earmarks_; }

 private:
  const std::string policy_;
  std::map<std::string, std::string> earmarks_;
};

// Parts of Plan, for those who explain it.

// What is promised to the wish on this device.
uint64_t Need(const Wish& wish, const DeviceState& device);
// Why the host never serves the wish; empty: it could, if it were empty.
std::string Obstacle(const Wish& wish, const HostState& host);
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
// Whether `one` is the better host by the policy; both have room.
bool IsBefore(const HostState& one, const HostState& other, const std::string& policy);
// As its claim does.
void Take(const Wish& wish, const std::vector<int32_t>& devices, HostState* host);
// The order in which wishes are served: their indices.
std::vector<size_t> OrderOf(const std::vector<Wish>& wishes);

}  // namespace longwire::scheduler::pool
