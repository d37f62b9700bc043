// How many devices a session gets, and which ones.
#include "server/daemon/sessions/placement.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

config::Tenant TenantOf(uint32_t devices) {
  config::Tenant tenant;
  tenant.set_name("research");
  if (devices != 0) tenant.set_devices(devices);
  return tenant;
}

uint32_t Wanted(uint32_t tenant_devices, const std::vector<std::string>& environment) {
  return WishOf(TenantOf(tenant_devices), environment, 4).devices;
}

TEST(WishTest, ATenantsNumberIsTheUsualAndTheMost) {
  EXPECT_EQ(Wanted(3, {}), 3u);
  EXPECT_EQ(Wanted(3, {"LONGWIRE_DEVICES=1"}), 1u);
  EXPECT_EQ(Wanted(3, {"LONGWIRE_DEVICES=3"}), 3u);
  EXPECT_EQ(Wanted(3, {"LONGWIRE_DEVICES=4"}), 0u);
  EXPECT_NE(WishOf(TenantOf(3), {"LONGWIRE_DEVICES=4"}, 8).refusal.find("'research'"),
            std::string::npos);
}

TEST(WishTest, WithoutANumberItIsOneAndUpToAll) {
  EXPECT_EQ(Wanted(0, {}), 1u);
  EXPECT_EQ(Wanted(0, {"CUDA_MODULE_LOADING=LAZY", "LONGWIRE_DEVICES=4"}), 4u);
  EXPECT_EQ(Wanted(0, {"LONGWIRE_DEVICES=5"}), 5u) << "placement says that there are four";
}

TEST(WishTest, ASmallerServerGivesWhatItHasUnlessANumberWasAsked) {
  EXPECT_EQ(Wanted(8, {}), 4u);
  EXPECT_EQ(Wanted(8, {"LONGWIRE_DEVICES=8"}), 8u);
  EXPECT_EQ(WishOf(TenantOf(8), {}, 0).devices, 1u);
}

TEST(WishTest, WhatIsNoNumberIsRefusedWithASentence) {
  for (const char* value : {"", "0", "two", "-1", "1x", " 1", "99999999999"}) {
    DevicesWish wish = WishOf(TenantOf(0), {std::string("LONGWIRE_DEVICES=") + value}, 4);
    EXPECT_EQ(wish.devices, 0u) << value;
    EXPECT_NE(wish.refusal.find("LONGWIRE_DEVICES"), std::string::npos) << value;
  }
}

class PlacementTableTest : public testing::Test {
 protected:
  PlacementTableTest() {
    for (int32_t device = 0; device < 4; ++device) {
      stats.devices.push_back(
          {device, "fake", 100 + device, 8 * kGiB, 8 * kGiB, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}});
    }
  }
  // Places the next session; the refusal where there is one.
  std::string Place(config::Placement policy, uint32_t devices = 1) {
    std::string sentence, text;
    for (int32_t device : book.Place(next++, devices, policy, stats, busy, &sentence)) {
      text += (text.empty() ? "" : " ") + std::to_string(device);
    }
    return text.empty() ? sentence : text;
  }
  void Lease(uint64_t session, int32_t device, uint64_t bytes) {
    stats.sessions.push_back({session, 1, device, bytes, bytes, 0});
  }

  warden::Stats stats;
  std::map<uint32_t, double> busy;
  PlacementTable book;
  uint64_t next = 1;
};

TEST_F(PlacementTableTest, EachPolicyFillsInItsOrder) {
  EXPECT_EQ(Place(config::spread), "0");
  EXPECT_EQ(Place(config::spread), "1");
  EXPECT_EQ(Place(config::spread), "2");
  EXPECT_EQ(Place(config::pack), "0");
  EXPECT_EQ(Place(config::pack), "0");
  EXPECT_EQ(Place(config::least_loaded), "3");
  EXPECT_EQ(Place(config::least_loaded), "1");
}

TEST_F(PlacementTableTest, SeveralDevicesComeInTheDriversOrder) {
  Lease(0, 0, 1 * kGiB);
  EXPECT_EQ(Place(config::spread, 3), "1 2 3");
  EXPECT_EQ(Place(config::spread, 4), "0 1 2 3");
  EXPECT_NE(Place(config::spread, 5).find("asks for 5 devices"), std::string::npos);
}

// Two programs that start at the same moment: the warden knows of neither yet.
TEST_F(PlacementTableTest, ASessionCountsBeforeTheWardenKnowsIt) {
  for (uint64_t session = 1; session <= 128; ++session) {
    EXPECT_EQ(Place(config::pack), "0") << session;
  }
  EXPECT_EQ(Place(config::pack), "1") << "128 first leases fill the first device";
  book.Forget(7);
  EXPECT_EQ(Place(config::pack), "0");
}

TEST_F(PlacementTableTest, LeasedMemoryOfLiveSessionsCounts) {
  EXPECT_EQ(Place(config::pack), "0");
  Lease(1, 0, 8 * kGiB - 32 * kMiB);
  EXPECT_EQ(Place(config::pack), "1") << "not even a first lease is left on the first device";
  Lease(99, 2, 8 * kGiB);
  EXPECT_EQ(Place(config::spread), "2") << "that session has ended, its memory comes back";
  for (int32_t device = 1; device < 4; ++device) Lease(0, device, 8 * kGiB);
  std::string refusal = Place(config::spread);
  EXPECT_NE(refusal.find("no device has that much"), std::string::npos) << refusal;
}

TEST_F(PlacementTableTest, LeastLoadedGoesWhereLeastWasComputed) {
  busy = {{0, 0.9}, {1, 0.4}, {2, 0.1}, {3, 0.7}};
  EXPECT_EQ(Place(config::least_loaded), "2");
  EXPECT_EQ(Place(config::least_loaded, 2), "1 3") << "the one on 2 has just begun";
  EXPECT_EQ(Place(config::spread), "0");
}

// What they compute is not in `busy` yet.
TEST_F(PlacementTableTest, SessionsThatBeginTogetherDoNotCrowd) {
  busy = {{0, 0.2}, {1, 0.3}, {2, 0.0}, {3, 0.1}};
  std::string places;
  for (int i = 0; i < 8; ++i) places += Place(config::least_loaded);
  EXPECT_EQ(places, "23012301");
}

TEST_F(PlacementTableTest, DevicesWithoutAKeeperAreLeftOut) {
  stats.devices[0].keeper_pid = 0;
  stats.devices[1].lendable = 0;
  EXPECT_EQ(Place(config::pack), "2");
  EXPECT_EQ(Place(config::spread, 2), "2 3");
  EXPECT_NE(Place(config::spread, 3).find("the server has 2"), std::string::npos);
  for (warden::DeviceStats& device : stats.devices) device.keeper_pid = 0;
  EXPECT_NE(Place(config::pack).find("its log says why"), std::string::npos);
}

TEST_F(PlacementTableTest, AForecastTakesNoPlace) {
  std::string sentence;
  auto forecast = [&](uint32_t devices) {
    return book.Forecast(devices, config::spread, stats, busy, &sentence);
  };
  EXPECT_EQ(forecast(1), std::vector<int32_t>{0});
  EXPECT_EQ(forecast(1), std::vector<int32_t>{0}) << "the one before has counted";
  EXPECT_EQ(Place(config::spread), "0");
  EXPECT_EQ(forecast(2), (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(forecast(5).empty());
  EXPECT_NE(sentence.find("asks for 5 devices"), std::string::npos);
  // Whoever only looks is shown full devices, too.
  for (int32_t device = 0; device < 4; ++device) Lease(0, device, 8 * kGiB);
  EXPECT_NE(Place(config::spread).find("no device has that much"), std::string::npos);
  EXPECT_EQ(forecast(1).size(), 1u);
}

TEST_F(PlacementTableTest, ADeviceSmallerThanAFirstLeaseStillServes) {
  stats.devices.resize(1);
  stats.devices[0].lendable = 16 * kMiB;
  EXPECT_EQ(Place(config::least_loaded), "0");
}

}  // namespace
}  // namespace longwire::daemon
