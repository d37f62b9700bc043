// Who waits in a pool, in which order, and that nobody waits for ever: by small cases, and by a
// pool on a virtual clock with random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

HostState HostOf(const std::string& name, size_t devices) {
  HostState host;
  host.name = name;
  host.sessions_limit = 100;
  for (size_t i = 0; i < devices; ++i) {
    host.devices.push_back({static_cast<int32_t>(i), 8 * kGiB, 0, 0, false, 0, UINT64_MAX, 0});
  }
  return host;
}

Wish WishOf(uint64_t number, const std::string& tenant, uint64_t gib, uint32_t devices = 1) {
  Wish wish;
  wish.number = std::to_string(number);
  wish.tenant = tenant;
  wish.devices = devices;
  wish.bytes = gib * kGiB;
  wish.age = number;
  wish.wait = true;
  return wish;
}

// Numbers of those that one pass places.
std::vector<std::string> Placed(Planner& planner, const std::vector<HostState>& hosts,
                                const std::vector<Wish>& wishes, uint64_t now = 0) {
  std::vector<std::string> numbers;
  for (const Decision& one : planner.Plan(hosts, wishes, SIZE_MAX, now)) {
    if (one.outcome == Outcome::kPlaced) numbers.push_back(wishes[one.wish].number);
  }
  return numbers;
}

using Numbers = std::vector<std::string>;

TEST(Queue, TenantsTakeTurnsAlsoFromPassToPass) {
  Planner planner("pack");
  std::vector<Wish> wishes;
  for (uint64_t i = 1; i <= 3; ++i) wishes.push_back(WishOf(i, "a", 8));
  for (uint64_t i = 4; i <= 6; ++i) wishes.push_back(WishOf(i, "b", 8));
  Numbers order;
  while (!wishes.empty()) {  // one device comes free at a time
    const Numbers placed = Placed(planner, {HostOf("h", 1)}, wishes);
    ASSERT_EQ(placed.size(), 1u);
    order.push_back(placed[0]);
    std::erase_if(wishes, [&](const Wish& wish) { return wish.number == placed[0]; });
  }
  // The one behind the first has the host kept, so it comes next: tenant b's.
  EXPECT_EQ(order, (Numbers{"1", "4", "2", "5", "3", "6"}));
}

TEST(Queue, PatienceCountsAsAClassMore) {
  Wish old = WishOf(2, "a", 8), higher = WishOf(1, "b", 8);
  higher.priority = 1;
  EXPECT_EQ(OrderOf({old, higher}), (std::vector<size_t>{1, 0}));
  old.waited = Options().patience - 1;
  EXPECT_EQ(OrderOf({old, higher}), (std::vector<size_t>{1, 0}));
  old.waited = Options().patience;
  old.age = 0;
  EXPECT_EQ(OrderOf({old, higher}), (std::vector<size_t>{0, 1})) << "older in the same class";
  higher.waited = old.waited;
  EXPECT_EQ(OrderOf({old, higher}), (std::vector<size_t>{1, 0}));
}

TEST(Queue, ATenantHasSoManyWaitingAndHearsIt) {
  HostState full = HostOf("h", 1);
  full.devices[0].promised = 8 * kGiB;
  std::vector<Wish> wishes;
  for (uint64_t i = 1; i <= 102; ++i) wishes.push_back(WishOf(i, "a", 1));
  wishes.push_back(WishOf(103, "b", 1));
  Planner planner("pack");
  for (const Decision& one : planner.Plan({full}, wishes, SIZE_MAX)) {
    const bool refused = one.wish == 100 || one.wish == 101;  // the youngest of tenant a
    EXPECT_EQ(one.outcome, refused ? Outcome::kRefused : Outcome::kWaits) << one.wish;
    if (!refused) continue;
    EXPECT_NE(one.reason.find("tenant 'a' has 100 programs"), std::string::npos);
  }
}

TEST(Queue, AnEarmarkOutlivesAPassAndHigherClasses) {
  HostState host = HostOf("h", 2);
  host.devices[0].promised = 8 * kGiB;
  Planner planner("pack");
  const Wish large = WishOf(1, "a", 8, 2);
  EXPECT_EQ(Placed(planner, {host}, {large}), Numbers{});
  Wish urgent = WishOf(2, "b", 1);
  urgent.priority = 1;
  EXPECT_EQ(Placed(planner, {host}, {large, urgent}), Numbers{})
      << "device 1 is kept for the large one";
  EXPECT_EQ(planner.earmarks().at("1"), "h");
  EXPECT_EQ(Placed(planner, {HostOf("h", 2)}, {large, urgent}), Numbers{"1"});
  EXPECT_FALSE(planner.earmarks().contains("1"));
}

TEST(Queue, OneEarmarkPerClassAndTwoInAll) {
  std::vector<HostState> hosts;
  for (const char* name : {"a", "b", "c", "d"}) {
    hosts.push_back(HostOf(name, 1));
    hosts.back().devices[0].promised = 8 * kGiB;
  }
  std::vector<Wish> wishes;
  for (uint64_t i = 1; i <= 6; ++i) {
    wishes.push_back(WishOf(i, "t", 8));
    wishes.back().priority = static_cast<uint32_t>((i - 1) / 2);
  }
  Planner planner("pack");
  EXPECT_EQ(Placed(planner, hosts, wishes), Numbers{});
  EXPECT_EQ(planner.earmarks(), (std::map<std::string, std::string>{{"5", "a"}, {"3", "b"}}));
}

TEST(Queue, ALimitPassesAnEarmarkThatIsReadyLater) {
  HostState host = HostOf("h", 2);
  host.devices[0].promised = 8 * kGiB;
  host.devices[0].ends = 1000;
  Planner planner("pack");
  const Wish large = WishOf(1, "a", 8, 2);
  Wish small = WishOf(2, "b", 1);
  small.limit = 901;
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 100), Numbers{}) << "it ends a second late";
  small.limit = 900;
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 100), Numbers{"2"});
}

TEST(Queue, WithoutKnownEndsOneLimitBoundsAllWhoPass) {
  HostState host = HostOf("h", 2);
  host.devices[0].promised = 8 * kGiB;
  host.devices[0].ends = kNever;
  Planner planner("pack");
  const Wish large = WishOf(1, "a", 8, 2);
  Wish small = WishOf(2, "b", 1);
  small.limit = 600;
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 100), Numbers{"2"});
  small.number = "3";
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 101), Numbers{}) << "it would end at 701";
  small.limit = 599;
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 101), Numbers{"3"});
  EXPECT_EQ(Placed(planner, {host}, {large, small}, 701), Numbers{}) << "nobody passes any more";
}

TEST(Queue, AffinityGoesWhereTheProgramRuns) {
  std::vector<HostState> hosts = {HostOf("a", 1), HostOf("b", 1)};
  hosts[1].programs.insert(KindOf("research", "train"));
  hosts[1].sessions = hosts[1].devices[0].sessions = 3;
  Planner affinity("affinity"), least("least_loaded");
  Wish wish = WishOf(1, "research", 1);
  wish.program = "train";
  const auto host_of = [&](Planner& planner) { return planner.Plan(hosts, {wish}, 1)[0].host; };
  EXPECT_EQ(host_of(affinity), "b");
  EXPECT_EQ(host_of(least), "a");
  wish.tenant = "other";
  EXPECT_EQ(host_of(affinity), "a") << "what another tenant has cached is not its";
}

// Of many who wait only the first of a kind is looked for on every host: the others have room there
// neither, and that is so.
TEST(Queue, WhoIsNotPlacedHasRoomOnlyWhereSomebodyIsKept) {
  std::mt19937 random(5);
  std::vector<HostState> hosts;
  for (int i = 0; i < 40; ++i) {
    hosts.push_back(HostOf("h" + std::to_string(i), 4));
    hosts.back().labels["kind"] = std::to_string(i % 2);
    for (DeviceState& device : hosts.back().devices) device.promised = (4 + random() % 5) * kGiB;
  }
  std::vector<Wish> wishes;
  for (uint64_t i = 1; i <= 300; ++i) {
    wishes.push_back(WishOf(i, std::string(1, static_cast<char>('a' + i % 5)), 1 + random() % 8,
                            1 + static_cast<uint32_t>(random() % 4)));
    if (random() % 2 == 0) wishes.back().labels["kind"] = std::to_string(random() % 2);
    if (random() % 5 == 0) wishes.back().avoid = {"h" + std::to_string(random() % 40)};
    wishes.back().priority = static_cast<uint32_t>(random() % 3);
  }
  for (const char* policy : {"pack", "spread", "least_loaded", "affinity"}) {
    Planner planner(policy);
    const std::vector<Decision> decisions = planner.Plan(hosts, wishes, SIZE_MAX);
    std::vector<HostState> after = hosts;
    for (const Decision& one : decisions) {
      if (one.outcome != Outcome::kPlaced) continue;
      Take(wishes[one.wish], one.devices, &*std::ranges::find(after, one.host, &HostState::name));
    }
    std::set<std::string> kept;
    for (const auto& [number, host] : planner.earmarks()) kept.insert(host);
    size_t waiting = 0;
    for (const Decision& one : decisions) {
      if (one.outcome != Outcome::kWaits) continue;
      ++waiting;
      for (const HostState& host : after) {
        if (kept.contains(host.name) || !Obstacle(wishes[one.wish], host).empty()) continue;
        EXPECT_TRUE(ChooseDevices(wishes[one.wish], host, policy, false).empty())
            << policy << ": " << wishes[one.wish].number << " has room at " << host.name;
      }
    }
    EXPECT_GT(waiting, 100u);
  }
}

// A pool on a virtual clock, with more work than it has room for.
class Flood {
 public:
  explicit Flood(uint32_t seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) hosts_.push_back(HostOf(name, 2));
  }

  // The longest that any large program of the lowest class has waited. `starves`: a planted fault,
  // large programs are left out of the queue while small ones wait.
  uint64_t LongestWait(bool starves) {
    Options options;
    options.patience = 60;
    Planner planner(options);
    uint64_t longest = 0;
    for (uint64_t now = 1; now <= 300; ++now) {
      End(now);
      Fill(now);
      std::vector<Wish> asked = wishes_;
      if (starves) std::erase_if(asked, [](const Wish& wish) { return wish.devices == 2; });
      for (Wish& wish : asked) wish.waited = now - came_[wish.number];
      for (const Decision& one : planner.Plan(hosts_, asked, 20, now)) {
        if (one.outcome == Outcome::kPlaced) Start(asked[one.wish], one, now);
      }
      for (const Wish& wish : wishes_) {
        if (wish.devices == 2) longest = std::max(longest, now - came_[wish.number]);
      }
    }
    return longest;
  }

 private:
  struct Running {
    Wish wish;
    Decision where;
    uint64_t ends;
  };

  uint64_t Draw(uint64_t below) { return random_() % below; }

  void Fill(uint64_t now) {
    while (wishes_.size() < 24) {
      Wish wish = WishOf(++number_, std::string(1, static_cast<char>('a' + Draw(3))), 1 + Draw(4));
      wish.priority = static_cast<uint32_t>(Draw(2));
      if (Draw(4) == 0) wish.limit = 1 + Draw(20);
      Add(wish, now);
    }
    const bool has_large =
        std::ranges::any_of(wishes_, [](const Wish& wish) { return wish.devices == 2; });
    if (!has_large) Add(WishOf(++number_, "large", 8, 2), now);
  }

  void Add(const Wish& wish, uint64_t now) {
    wishes_.push_back(wish);
    came_[wish.number] = now;
  }

  HostState& Host(const std::string& name) {
    return *std::ranges::find(hosts_, name, &HostState::name);
  }

  void Start(const Wish& wish, const Decision& where, uint64_t now) {
    Take(wish, where.devices, &Host(where.host));
    for (const DeviceState& device : Host(where.host).devices) {
      EXPECT_LE(device.promised, device.total);
    }
    const uint64_t length = wish.limit == 0 ? 1 + Draw(20) : 1 + Draw(wish.limit);
    running_.push_back({wish, where, now + length});
    std::erase_if(wishes_, [&](const Wish& one) { return one.number == wish.number; });
  }

  void End(uint64_t now) {
    std::erase_if(running_, [&](const Running& one) {
      if (one.ends > now) return false;
      HostState& host = Host(one.where.host);
      --host.sessions;
      for (int32_t device : one.where.devices) {
        host.devices[static_cast<size_t>(device)].promised -= one.wish.bytes;
      }
      return true;
    });
    for (HostState& host : hosts_) {
      for (DeviceState& device : host.devices) device.ends = 0;
    }
    for (const Running& one : running_) {
      for (int32_t device : one.where.devices) {
        uint64_t& ends = Host(one.where.host).devices[static_cast<size_t>(device)].ends;
        ends = std::max(ends, one.wish.limit == 0 ? kNever : one.ends);
      }
    }
  }

  std::mt19937 random_;
  std::vector<HostState> hosts_;
  std::vector<Wish> wishes_;
  std::vector<Running> running_;
  std::map<std::string, uint64_t> came_;
  uint64_t number_ = 0;
};

// What is in the way when the host is kept ends in 20, whoever passes in 20 more; before that come
// at most the programs of two earmarks.
constexpr uint64_t kBound = 120;

TEST(Starvation, NobodyWaitsForEver) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    EXPECT_LE(Flood(seed).LongestWait(false), kBound) << "seed " << seed;
  }
}

TEST(Starvation, APlantedOneIsFound) { EXPECT_GT(Flood(1).LongestWait(true), kBound); }

}  // namespace
}  // namespace longwire::scheduler::pool
