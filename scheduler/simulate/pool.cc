#include "scheduler/simulate/pool.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

namespace longwire::scheduler::simulate {
namespace {

using pool::Decision;
using pool::HostState;
using pool::Outcome;
using pool::Wish;

// As the placer's own (server/pool/placer.cc).
constexpr size_t kPlacements = 20;

// What a session writes into etcd beside its placement: by the front the request, and that its
// answer has been heard; by the host that it is open; at its end the claim, its owner, and what the
// host has free again.
constexpr uint64_t kWritesAround = 2 + 1 + 3;
constexpr uint64_t kTransactionsAround = 2 + 1 + 1;
// In the transaction that places it: the request, the answer, the claim, the owner. And for each
// host in it what that has free.
constexpr uint64_t kWritesPlacing = 4;

class PoolSimulation {
 public:
  explicit PoolSimulation(const PoolOptions& options)
      : options_(options), planner_(options.queue), random_(static_cast<uint32_t>(options.seed)) {
    for (uint32_t i = 0; i < options.hosts; ++i) {
      HostState& host = hosts_.emplace_back();
      std::string digits = std::to_string(i);
      host.name = "h" + std::string(4 - std::min<size_t>(4, digits.size()), '0') + digits;
      index_[host.name] = i;
      host.sessions_limit = 64;
      for (uint32_t device = 0; device < options.devices; ++device) {
        pool::DeviceState& to = host.devices.emplace_back();
        to.ordinal = static_cast<int32_t>(device);
        to.total = options.bytes;
      }
    }
  }

  PoolResult Run() {
    for (uint64_t now = 1; now <= options_.seconds; ++now) {
      End(now);
      for (uint32_t i = 0; i < options_.rate && number_ < options_.programs; ++i) Come(now);
      while (Pass(now)) {
      }
      // The place that a program sees changes about once a second.
      result_.writes += wishes_.size();
      result_.transactions += (wishes_.size() + kPlacements - 1) / kPlacements;
      result_.events += 2 * wishes_.size();
      Measure();
      if (options_.until_done && number_ == options_.programs && wishes_.empty()) break;
    }
    result_.waiting = wishes_.size();
    result_.fragmentation /= options_.seconds;
    result_.used /= options_.seconds;
    return std::move(result_);
  }

 private:
  struct Running {
    std::string host, kind;
    std::vector<int32_t> devices;
    uint64_t bytes;
    bool limited;
  };

  uint64_t Draw(uint64_t below) { return random_() % below; }

  void Come(uint64_t now) {
    Wish& wish = wishes_.emplace_back();
    wish.age = ++number_;
    wish.number = std::to_string(number_);
    wish.tenant = "t" + std::to_string(Draw(options_.tenants));
    wish.program = "p" + std::to_string(Draw(5));
    // Most are small; some want a device, few a whole host.
    const uint64_t size = Draw(100);
    const uint64_t whole = options_.bytes;
    wish.bytes = size < 60 ? whole / 80 * (1 + Draw(20)) : size < 85 ? whole / 2 : whole;
    if (size >= 95) wish.devices = size >= 99 ? options_.devices : std::min(2u, options_.devices);
    wish.priority = Draw(10) == 0 ? 1 : 0;
    if (Draw(3) == 0) wish.limit = 1 + Draw(options_.longest);
    wish.wait = true;
    came_[wish.number] = now;
  }

  bool Pass(uint64_t now) {
    if (wishes_.empty()) return false;
    for (Wish& wish : wishes_) wish.waited = now - came_[wish.number];
    const auto begun = std::chrono::steady_clock::now();
    const std::vector<Decision> decisions = planner_.Plan(hosts_, wishes_, kPlacements, now);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    result_.pass_ms.push_back(took.count());
    std::set<std::string> gone, hosts;
    size_t placed = 0;
    for (const Decision& decision : decisions) {
      const Wish& wish = wishes_[decision.wish];
      if (decision.outcome == Outcome::kWaits) continue;
      gone.insert(wish.number);
      if (decision.outcome == Outcome::kRefused) ++result_.refused;
      if (decision.outcome != Outcome::kPlaced) continue;
      Start(wish, decision, now);
      hosts.insert(decision.host);
      ++placed;
    }
    Count(placed, hosts.size());
    std::erase_if(wishes_, [&](const Wish& wish) { return gone.contains(wish.number); });
    return placed == kPlacements;
  }

  void Count(size_t placed, size_t hosts) {
    if (placed == 0) return;
    result_.writes += placed * (kWritesAround + kWritesPlacing) + hosts;
    result_.transactions += placed * kTransactionsAround + 1;
    // The placer watches all keys, a front its answers, a host its claims.
    result_.events += placed * (kWritesAround + kWritesPlacing) + hosts + 2 * placed + 3 * placed;
  }

  void Start(const Wish& wish, const Decision& decision, uint64_t now) {
    HostState& host = hosts_[index_[decision.host]];
    const std::string kind = pool::KindOf(wish.tenant, wish.program);
    result_.warm += host.programs.contains(kind) ? 1 : 0;
    pool::Take(wish, decision.devices, &host);
    const uint64_t length = 1 + Draw(wish.limit == 0 ? options_.longest : wish.limit);
    running_.emplace(now + length, Running{decision.host, kind, decision.devices, decision.bytes,
                                           wish.limit != 0});
    const uint64_t ends = wish.limit == 0 ? pool::kNever : now + wish.limit;
    for (int32_t device : decision.devices) {
      uint64_t& last = host.devices[static_cast<size_t>(device)].ends;
      last = std::max(last, ends);
    }
    ++kinds_[{decision.host, kind}];
    result_.longest_wait = std::max(result_.longest_wait, now - came_[wish.number]);
    result_.placements.push_back({now, wish.number, decision.host});
    came_.erase(wish.number);
  }

  void End(uint64_t now) {
    while (!running_.empty() && running_.begin()->first <= now) {
      const Running& one = running_.begin()->second;
      HostState& host = hosts_[index_[one.host]];
      --host.sessions;
      for (int32_t ordinal : one.devices) {
        pool::DeviceState& device = host.devices[static_cast<size_t>(ordinal)];
        device.promised -= one.bytes;
        if (--device.sessions == 0) device.ends = 0;
      }
      if (--kinds_[{one.host, one.kind}] == 0) host.programs.erase(one.kind);
      running_.erase(running_.begin());
    }
  }

  void Measure() {
    uint64_t free = 0, on_used = 0, all = 0;
    for (const HostState& host : hosts_) {
      for (const pool::DeviceState& device : host.devices) {
        all += device.total;
        free += device.total - device.promised;
        if (device.sessions != 0) on_used += device.total - device.promised;
      }
    }
    if (free != 0)
      result_.fragmentation += static_cast<double>(on_used) / static_cast<double>(free);
    result_.used += 1 - static_cast<double>(free) / static_cast<double>(all);
  }

  const PoolOptions options_;
  pool::Planner planner_;
  std::mt19937 random_;
  std::vector<HostState> hosts_;
  std::map<std::string, size_t> index_;
  std::vector<Wish> wishes_;
  std::multimap<uint64_t, Running> running_;  // by when it ends
  std::map<std::pair<std::string, std::string>, uint32_t> kinds_;
  std::map<std::string, uint64_t> came_;
  uint64_t number_ = 0;
  PoolResult result_;
};

}  // namespace

PoolResult SimulatePool(const PoolOptions& options) { return PoolSimulation(options).Run(); }

}  // namespace longwire::scheduler::simulate
