// Plans against all that there could be, for many small servers at random.
#include "scheduler/placement/rebalance.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

namespace longwire::scheduler {
namespace {

using Cost = std::pair<uint64_t, size_t>;  // bytes moved, sessions

struct Server {
  std::vector<DeviceLoad> devices;
  std::vector<Occupant> occupants;
  PlacementRequest request;
};

bool MayMove(const Occupant& one) {
  return one.best_effort && !one.stays && !(one.moved && *one.moved < kRestAfterMove);
}

// What the plan costs; none if it does not make room, or moves what it may not.
std::optional<Cost> CostOf(const Server& server, const RebalancePlan& plan) {
  std::map<DeviceId, uint64_t> free;
  std::map<uint64_t, Occupant> sessions;
  for (const DeviceLoad& device : server.devices) free[device.id] = device.free_bytes;
  for (const Occupant& one : server.occupants) sessions[one.session] = one;
  const std::set<DeviceId> wanted(plan.devices.begin(), plan.devices.end());
  if (wanted.size() != server.request.devices) return std::nullopt;
  Cost cost;
  for (const SessionMove& move : plan.moves) {
    const Occupant one = sessions.at(move.session);
    if (!MayMove(one) || wanted.contains(move.to) || !wanted.contains(one.device)) {
      return std::nullopt;
    }
    if (free.at(move.to) < one.room) return std::nullopt;
    free[move.to] -= one.room;
    free[one.device] += one.room;
    cost = {cost.first + one.bytes, cost.second + 1};
    sessions.erase(move.session);  // once
  }
  for (DeviceId device : wanted) {
    if (free.at(device) < server.request.bytes) return std::nullopt;
  }
  return cost;
}

// The best of all sets of devices and all ways to put each session somewhere, or nowhere else.
class Every {
 public:
  explicit Every(const Server& server) : server_(server) {}
  std::optional<Cost> Best() {
    for (uint32_t set = 0; set < 1u << server_.devices.size(); ++set) {
      plan_ = {};
      for (size_t i = 0; i < server_.devices.size(); ++i) {
        if ((set >> i & 1) != 0) plan_.devices.push_back(server_.devices[i].id);
      }
      if (plan_.devices.size() == server_.request.devices) Try(0);
    }
    return best_;
  }

 private:
  void Try(size_t at) {
    if (at == server_.occupants.size()) {
      const auto cost = CostOf(server_, plan_);
      if (cost && (!best_ || *cost < *best_)) best_ = cost;
      return;
    }
    Try(at + 1);
    for (const DeviceLoad& device : server_.devices) {
      if (device.id == server_.occupants[at].device) continue;
      plan_.moves.push_back({server_.occupants[at].session, device.id});
      Try(at + 1);
      plan_.moves.pop_back();
    }
  }

  const Server& server_;
  RebalancePlan plan_;
  std::optional<Cost> best_;
};

Server AnyServer(std::mt19937& random) {
  const auto up_to = [&](uint64_t most) { return random() % (most + 1); };
  Server server;
  const size_t devices = 2 + up_to(1);
  for (size_t i = 0; i < devices; ++i) {
    DeviceLoad& device = server.devices.emplace_back();
    device.id = static_cast<DeviceId>(i);
    device.total_bytes = device.free_bytes = 6 + up_to(4);
  }
  const uint64_t sessions = up_to(6);
  for (uint64_t i = 1; i <= sessions; ++i) {
    Occupant one;
    DeviceLoad& device = server.devices[up_to(devices - 1)];
    one.session = i;
    one.device = device.id;
    one.room = 1 + up_to(4);
    one.bytes = up_to(one.room);
    one.best_effort = up_to(7) != 0;
    one.stays = up_to(7) == 0;
    if (up_to(3) == 0) one.moved = std::chrono::seconds(59 + up_to(1));
    if (one.room > device.free_bytes) continue;
    device.free_bytes -= one.room;
    server.occupants.push_back(one);
  }
  server.request = {static_cast<uint32_t>(1 + up_to(1)), 3 + up_to(7)};
  return server;
}

TEST(RebalanceTest, NoOtherPlanMovesLess) {
  std::mt19937 random(86);
  int found = 0, none = 0, moved = 0;
  for (int i = 0; i < 5000; ++i) {
    const Server server = AnyServer(random);
    const RebalancePlan plan = PlanRebalance(server.devices, server.occupants, server.request);
    const std::optional<Cost> best = Every(server).Best();
    if (!best) {
      EXPECT_TRUE(plan.devices.empty()) << i;
      ++none;
      continue;
    }
    EXPECT_EQ(CostOf(server, plan), best) << i;
    ++found;
    moved += plan.moves.empty() ? 0 : 1;
  }
  EXPECT_GT(none, 100);
  EXPECT_GT(found - moved, 100);
  EXPECT_GT(moved, 100);
}

TEST(RebalanceTest, ASearchThatIsTooLongEndsWithAPlan) {
  Server server;
  constexpr uint32_t kDevices = 16;
  for (uint32_t i = 0; i < kDevices; ++i) server.devices.push_back({i, 80'000, 80'000, 0, 0});
  for (uint64_t i = 0; i < 16ull * 12; ++i) {
    const auto device = static_cast<DeviceId>(i % kDevices);
    const uint64_t room = 3'000 + i * 7;  // all differ
    server.devices[device].free_bytes -= room;
    server.occupants.push_back({i, device, room, room, true, false, std::nullopt});
  }
  server.request = {4, 60'000};
  const RebalancePlan plan = PlanRebalance(server.devices, server.occupants, server.request);
  EXPECT_TRUE(CostOf(server, plan).has_value());
}

}  // namespace
}  // namespace longwire::scheduler
