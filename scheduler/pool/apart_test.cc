// Programs on several hosts: only where no host alone has room, on the fewest, with devices that
// nobody else uses.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

HostState HostOf(const std::string& name, size_t devices, size_t used = 0) {
  HostState host;
  host.name = name;
  host.sessions_limit = 100;
  host.gives_alone = true;
  for (size_t i = 0; i < devices; ++i) {
    DeviceState& device = host.devices.emplace_back();
    device.ordinal = static_cast<int32_t>(i);
    device.total = 8 * kGiB;
    device.sessions = i < used ? 1 : 0;
  }
  host.sessions = static_cast<uint32_t>(used);
  return host;
}

Wish WishOf(uint32_t devices, uint32_t hosts = 8) {
  Wish wish;
  wish.number = "1";
  wish.tenant = "research";
  wish.devices = devices;
  wish.hosts = hosts;
  wish.bytes = kGiB;
  return wish;
}

// "a.0.1 b.0", or the reason why it is not placed.
std::string PlacesOf(const std::vector<HostState>& hosts, const Wish& wish) {
  Planner planner("spread");
  const Decision one = planner.Plan(hosts, {wish}, 20).at(0);
  if (one.outcome != Outcome::kPlaced) return one.reason;
  std::vector<Part> parts = {{one.host, one.devices, one.bytes}};
  parts.insert(parts.end(), one.more.begin(), one.more.end());
  std::string text;
  for (const Part& part : parts) {
    text += (text.empty() ? "" : " ") + part.host;
    for (int32_t device : part.devices) text += "." + std::to_string(device);
    EXPECT_EQ(part.bytes, kGiB);
  }
  return text;
}

TEST(Apart, OneHostIsBetterThanSeveral) {
  EXPECT_EQ(PlacesOf({HostOf("a", 2), HostOf("b", 4), HostOf("c", 2)}, WishOf(4)), "b.0.1.2.3");
  // Also where it has its devices not to itself.
  EXPECT_EQ(PlacesOf({HostOf("a", 2), HostOf("b", 4, 4), HostOf("c", 2)}, WishOf(4)), "b.0.1.2.3");
}

TEST(Apart, TheFewestHostsAndWhatIsLeftOverIsLeftWhole) {
  EXPECT_EQ(PlacesOf({HostOf("a", 1), HostOf("b", 3), HostOf("c", 2), HostOf("d", 2)}, WishOf(5)),
            "b.0.1.2 c.0.1");
  EXPECT_EQ(PlacesOf({HostOf("a", 3), HostOf("b", 3), HostOf("c", 1)}, WishOf(4)), "a.0.1.2 c.0");
}

TEST(Apart, DevicesThatOthersUseAreNoParts) {
  EXPECT_EQ(PlacesOf({HostOf("a", 2, 1), HostOf("b", 2), HostOf("c", 1)}, WishOf(4)),
            "b.0.1 c.0 a.1");
  const std::string why = PlacesOf({HostOf("a", 2, 1), HostOf("b", 2)}, WishOf(4));
  EXPECT_NE(why.find("on several hosts: 3 devices that nobody uses"), std::string::npos) << why;
}

TEST(Apart, OneThatHasItsDevicesToItselfSharesThemWithNobody) {
  std::vector<HostState> hosts = {HostOf("a", 1), HostOf("b", 1)};
  Take(WishOf(1), {0}, hosts.data(), true);
  EXPECT_EQ(PlacesOf(hosts, WishOf(1)), "b.0");
  Take(WishOf(1), {0}, &hosts[1], true);
  const std::string why = PlacesOf(hosts, WishOf(1));
  EXPECT_NE(why.find("a: 1024 MiB are missing; b: 1024 MiB"), std::string::npos) << why;
}

TEST(Apart, NoMoreHostsThanItMayHave) {
  const std::vector<HostState> hosts = {HostOf("a", 1), HostOf("b", 1), HostOf("c", 1)};
  EXPECT_EQ(PlacesOf(hosts, WishOf(3)), "a.0 b.0 c.0");
  EXPECT_NE(PlacesOf(hosts, WishOf(3, 2)).find("on more than 2 hosts"), std::string::npos);
  // --same-host
  EXPECT_EQ(PlacesOf(hosts, WishOf(3, 1)).find("on several hosts"), std::string::npos);
}

TEST(Apart, HostsThatCannotServeItAreLeftOut) {
  std::vector<HostState> hosts = {HostOf("a", 1), HostOf("b", 1), HostOf("c", 1), HostOf("d", 1),
                                  HostOf("e", 1)};
  hosts[0].gives_alone = false;  // of an earlier version
  hosts[1].cordoned = true;
  hosts[2].sessions = hosts[2].sessions_limit;
  EXPECT_EQ(PlacesOf(hosts, WishOf(2)), "d.0 e.0");
}

TEST(Apart, WhatIsKeptForAnotherIsNotTaken) {
  // The first waits for both devices of a, which one of its sessions will leave.
  std::vector<HostState> hosts = {HostOf("a", 2, 1), HostOf("b", 1)};
  hosts[0].devices[0].promised = 8 * kGiB;
  Wish first = WishOf(2, 1), second = WishOf(2);
  first.wait = second.wait = true;
  first.bytes = 8 * kGiB;
  second.number = "2";
  second.age = 2;
  const auto outcome_of_second = [&] {
    const std::vector<Decision> decisions = Planner("spread").Plan(hosts, {first, second}, 20);
    EXPECT_EQ(decisions.at(0).outcome, Outcome::kWaits);
    return decisions.at(1).outcome;
  };
  EXPECT_EQ(outcome_of_second(), Outcome::kWaits);
  hosts.push_back(HostOf("c", 1));
  EXPECT_EQ(outcome_of_second(), Outcome::kPlaced);
}

TEST(Apart, AllOfItsPlacesAreInOneTransaction) {
  const std::vector<HostState> hosts = {HostOf("a", 1), HostOf("b", 1), HostOf("c", 1)};
  Wish alone = WishOf(1), wide = WishOf(2);
  wide.number = "2";
  wide.age = 2;
  Planner planner("spread");
  EXPECT_EQ(planner.Plan(hosts, {alone, wide}, 2).size(), 1u) << "three places do not fit";
  EXPECT_EQ(planner.Plan(hosts, {alone, wide}, 3).size(), 2u);
  EXPECT_EQ(planner.Plan(hosts, {wide}, 1).at(0).more.size(), 1u);
}

}  // namespace
}  // namespace longwire::scheduler::pool
