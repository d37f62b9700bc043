// CUDA_VISIBLE_DEVICES: each answer is what NVIDIA's driver 580.159 gave on two H200s for a list of
// the same form, but for those about a third device.
#include "client-shim/connect/visible_devices.h"

#include <gtest/gtest.h>

namespace longwire::shim {
namespace {

using Ordinals = std::vector<int>;

constexpr const char* kFirst = "GPU-25583732-4e8b-a601-114a-0d1b10b35c96";
constexpr const char* kSecond = "GPU-fe9a1c25-6a67-725a-c31b-8c4903c7b2c6";

std::vector<wire::DeviceDescription> TwoDevices() {
  std::vector<wire::DeviceDescription> devices(2);
  devices[0].uuid = {0x25, 0x58, 0x37, 0x32, 0x4e, 0x8b, 0xa6, 0x01,
                     0x11, 0x4a, 0x0d, 0x1b, 0x10, 0xb3, 0x5c, 0x96};
  devices[1].uuid = {0xfe, 0x9a, 0x1c, 0x25, 0x6a, 0x67, 0x72, 0x5a,
                     0xc3, 0x1b, 0x8c, 0x49, 0x03, 0xc7, 0xb2, 0xc6};
  return devices;
}

struct Case {
  std::string list;
  Ordinals chosen;
};

void Expect(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    VisibleDevices visible = ChooseVisible(one.list.c_str(), nullptr, TwoDevices());
    EXPECT_EQ(one.chosen, visible.chosen) << "'" << one.list << "'";
    EXPECT_EQ(one.chosen.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS, visible.code) << one.list;
    EXPECT_TRUE(one.chosen.empty() || !SelectsNothing(one.list.c_str())) << one.list;
  }
}

TEST(VisibleDevices, Numbers) {
  EXPECT_EQ((Ordinals{0, 1}), ChooseVisible(nullptr, nullptr, TwoDevices()).chosen);
  Expect({{"0", {0}},
          {"1", {1}},
          {"1,0", {1, 0}},
          {"", {}},
          {"  ", {}},
          {"7", {}},
          {"-1", {}},
          {"--1", {}},
          {"- 1", {}},
          {"abc", {}},
          {"NoDevFiles", {}},
          {"0,7,1", {0}},
          {"0,-1,1", {0}},
          {"0,,1", {0}},
          {",1", {}},
          {"1,", {1}},
          {"1,0,", {1, 0}},
          {"0,7,0", {0}}});
}

TEST(VisibleDevices, WhatFollowsANumberDoesNotCount) {
  Expect({{" 1 , 0", {1, 0}},
          {"1  ,  0  ", {1, 0}},
          {"\t1", {1}},
          {"1abc,0", {1, 0}},
          {"1;,0", {1, 0}},
          {"1 0", {1}},
          {"1.0,0", {1, 0}},
          {"0x1", {0}},
          {"01", {1}},
          {"+1", {1}},
          {"2147483648", {}},
          {"4294967296", {0}}});
}

TEST(VisibleDevices, Uuids) {
  std::string first = kFirst, second = kSecond;
  Expect({{second, {1}},
          {second + "," + first, {1, 0}},
          {"GPU-fe9a1c25", {1}},
          {"GPU-fe", {1}},
          {"GPU-fe9a,GPU-25", {1, 0}},
          {"GPU-fe9a1c256a67725ac31b8c4903c7b2c6", {1}},
          {"GPU-FE9A1C25-6A67-725A-C31B-8C4903C7B2C6", {1}},
          {second + "zz," + first, {1, 0}},
          {second + " ," + first, {1, 0}},
          {"GPU-fe9a1c25-zz", {}},
          {"GPU-fe9a1c25zz", {}},
          {"GPU-fe9a1c25 x", {}},
          {"GPU-", {}},
          {"GPU", {}},
          {" " + second, {}},
          {second.substr(4), {}},
          {"gpu-" + second.substr(4), {}},
          {"MIG-" + second, {}},
          {"GPU-ffffffff", {}},
          {second + ",x," + first, {1}}});
}

TEST(VisibleDevices, NumbersAndUuidsDoNotMix) {
  std::string first = kFirst, second = kSecond;
  Expect({{"0," + second, {0}}, {first + ",1", {0}}, {"0," + first + ",0", {0}}});
}

TEST(VisibleDevices, NamingOneTwiceIsAnError) {
  std::string second = kSecond;
  for (const std::string& list : {std::string("0,0"), std::string("1,1,0"), std::string("0,1,1"),
                                  second + "," + second, second + ",GPU-fe"}) {
    VisibleDevices visible = ChooseVisible(list.c_str(), nullptr, TwoDevices());
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, visible.code) << list;
    EXPECT_TRUE(visible.chosen.empty()) << list;
  }
}

TEST(VisibleDevices, AnAmbiguousUuidNamesNone) {
  auto devices = TwoDevices();
  devices.push_back(devices[1]);
  devices[2].uuid[15] = 0;
  EXPECT_EQ((Ordinals{}), ChooseVisible("GPU-fe9a", nullptr, devices).chosen);
  EXPECT_EQ((Ordinals{1}), ChooseVisible(kSecond, nullptr, devices).chosen);
}

TEST(VisibleDevices, NumbersFollowTheOrder) {
  auto devices = TwoDevices();
  for (int i = 0; i < 2; ++i) {
    devices[i].attributes = {{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0, 0},
                             {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0, 7 - i}};
  }
  EXPECT_EQ((Ordinals{0, 1}), ChooseVisible(nullptr, "FASTEST_FIRST", devices).chosen);
  EXPECT_EQ((Ordinals{1, 0}), ChooseVisible(nullptr, "PCI_BUS_ID", devices).chosen);
  EXPECT_EQ((Ordinals{1}), ChooseVisible("0", "PCI_BUS_ID", devices).chosen);
  EXPECT_EQ((Ordinals{1}), ChooseVisible(kSecond, "PCI_BUS_ID", devices).chosen);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, ChooseVisible(nullptr, "nonsense", devices).code);
}

TEST(VisibleDevices, NoDevicesAtAll) {
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, ChooseVisible(nullptr, nullptr, {}).code);
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, ChooseVisible("0", nullptr, {}).code);
}

TEST(VisibleDevices, NoServerIsNeededToFindNothing) {
  for (const char* list : {"", "-1", "abc", "GPU", ",0"}) EXPECT_TRUE(SelectsNothing(list)) << list;
  for (const char* list : {"0", "9", "GPU-00"}) EXPECT_FALSE(SelectsNothing(list)) << list;
  EXPECT_FALSE(SelectsNothing(nullptr));
}

}  // namespace
}  // namespace longwire::shim
