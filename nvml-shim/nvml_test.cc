// The library against a fake server with replies that the test sets.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstring>
#include <vector>

#include "nvml-shim/fake_server.h"
#include "nvml-shim/interface.h"

namespace longwire::nvml {
namespace {

wire::ViewedDevice Device(unsigned number) {
  wire::ViewedDevice device;
  device.name = "NVIDIA H200";
  device.uuid[0] = static_cast<uint8_t>(number);
  device.attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                       {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                       {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                       {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
                       {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, static_cast<int>(0x10000 + number)},
                       {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xab},
                       {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 6},
                       {CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, 0x233510de}};
  device.memory_total = 1000;
  device.memory_reserved = 100;
  device.memory_free = 700;
  device.busy_percent = 42;
  device.processes = {{17, 4096, "/bin/seventeen"}, {18, 8192, "/bin/eighteen"}};
  return device;
}

class NvmlTest : public testing::Test {
 protected:
  void SetUp() override {
    wire::ViewReply reply;
    reply.driver_release = "580.95.05";
    reply.devices = {Device(0), Device(1)};
    server.SetReply(reply);
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &first), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
    EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  }

  // What was said before serves a moment longer.
  static void AwaitDevices(unsigned count) {
    for (unsigned seen = 0; seen != count;) {
      ASSERT_EQ(nvmlDeviceGetCount_v2(&seen), NVML_SUCCESS);
    }
  }

  FakeServer server;
  nvmlDevice_t first = nullptr, second = nullptr;
};

TEST_F(NvmlTest, WhatFollowsFromNameAndCapability) {
  unsigned value = 0;
  EXPECT_EQ(nvmlDeviceGetBrand(first, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 14u);
  EXPECT_EQ(nvmlDeviceGetArchitecture(first, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 9u);
  EXPECT_EQ(nvmlDeviceGetNumGpuCores(first, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 16896u);
  EXPECT_EQ(nvmlDeviceGetMaxClockInfo(first, NVML_CLOCK_SM, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 1980u);
  // The server does not know it.
  EXPECT_EQ(nvmlDeviceGetMaxClockInfo(first, NVML_CLOCK_MEM, &value), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetMaxClockInfo(first, NVML_CLOCK_COUNT, &value),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlTest, MemoryAndUse) {
  nvmlMemory_t memory;
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(second, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 1000u);
  EXPECT_EQ(memory.free, 700u);
  EXPECT_EQ(memory.used, 300u);
  nvmlUtilization_t use;
  ASSERT_EQ(nvmlDeviceGetUtilizationRates(second, &use), NVML_SUCCESS);
  EXPECT_EQ(use.gpu, 42u);
}

TEST_F(NvmlTest, PciAddresses) {
  nvmlPciInfo_t pci;
  ASSERT_EQ(nvmlDeviceGetPciInfo_v3(second, &pci), NVML_SUCCESS);
  EXPECT_STREQ(pci.busId, "00010001:AB:06.0");
  EXPECT_STREQ(pci.busIdLegacy, "0001:AB:06.0");
  EXPECT_EQ(pci.pciDeviceId, 0x233510deu);
  // The first version's structure is shorter: nothing behind it is touched.
  std::vector<char> old(sizeof(nvmlPciInfo_t), 'x');
  ASSERT_EQ(nvmlDeviceGetPciInfo(second, old.data()), NVML_SUCCESS);
  EXPECT_EQ(old[31], '#');
  EXPECT_EQ(old[32], 'x');
  nvmlPciInfoExt_t more = {};
  EXPECT_EQ(nvmlDeviceGetPciInfoExt(second, &more), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  more.version = NvmlVersion<nvmlPciInfoExt_t>(1);
  ASSERT_EQ(nvmlDeviceGetPciInfoExt(second, &more), NVML_SUCCESS);
  EXPECT_STREQ(more.busId, "00010001:AB:06.0");

  nvmlDevice_t found = nullptr;
  for (const char* text : {"00010001:AB:06.0", "10001:ab:6", "10001:ab:06.0"}) {
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(text, &found), NVML_SUCCESS) << text;
    EXPECT_EQ(found, second) << text;
  }
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("ab:06.0", &found), NVML_ERROR_NOT_FOUND);
  for (const char* text : {"", "GPU", "10001:ab:06.0x", "10001:ab:06.1"}) {
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(text, &found), NVML_ERROR_INVALID_ARGUMENT) << text;
  }
}

TEST_F(NvmlTest, UuidsInBothForms) {
  nvmlUUID_t uuid = {NvmlVersion<nvmlUUID_t>(1), NVML_UUID_TYPE_BINARY, {}};
  uuid.value.bytes[0] = 1;
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, second);
  uuid.type = NVML_UUID_TYPE_ASCII;
  std::strcpy(uuid.value.str, "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, first);
  uuid.version = 1;
  EXPECT_EQ(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(NvmlTest, ProcessesNeedRoom) {
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first, &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  nvmlProcessInfo_t infos[3] = {};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(first, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(infos[1].pid, 18u);
  EXPECT_EQ(infos[1].usedGpuMemory, 8192u);
  EXPECT_EQ(infos[2].pid, 0u);
  nvmlProcessInfo_v1_t old[2] = {};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(first, &count, old), NVML_SUCCESS);
  EXPECT_EQ(old[1].pid, 18u);
  nvmlProcessDetail_v1_t details[2] = {};
  nvmlProcessDetailList_t list = {NvmlVersion<nvmlProcessDetailList_t>(1),
                                  NVML_PROCESS_MODE_COMPUTE, 2, details};
  ASSERT_EQ(nvmlDeviceGetRunningProcessDetailList(first, &list), NVML_SUCCESS);
  EXPECT_EQ(details[1].pid, 18u);
  list.mode = NVML_PROCESS_MODE_GRAPHICS;
  ASSERT_EQ(nvmlDeviceGetRunningProcessDetailList(first, &list), NVML_SUCCESS);
  EXPECT_EQ(list.numProcArrayEntries, 0u);

  char name[6];
  ASSERT_EQ(nvmlSystemGetProcessName(17, name, sizeof(name)), NVML_SUCCESS);
  EXPECT_STREQ(name, "/bin/");
  EXPECT_EQ(nvmlSystemGetProcessName(19, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
}

TEST_F(NvmlTest, WhatIsNotSupportedSaysSo) {
  unsigned value = 0;
  EXPECT_EQ(nvmlDeviceGetTemperature(first, 0, &value), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first, 0, &value), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED), "Not supported");
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a code that no version has
  EXPECT_STREQ(nvmlErrorString(static_cast<nvmlReturn_t>(-1)), "Unknown error");
}

unsigned Status(nvmlDevice_t device, nvmlDevice_t other, unsigned capability) {
  unsigned status = 99;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(device, other, capability, &status), NVML_SUCCESS);
  return status;
}

TEST_F(NvmlTest, DevicesReachWhomTheDriverNames) {
  for (unsigned capability = 0; capability < NVML_P2P_CAPS_INDEX_PCI; ++capability) {
    EXPECT_EQ(Status(first, first, capability), unsigned{NVML_P2P_STATUS_OK});
    EXPECT_EQ(Status(first, second, capability), unsigned{NVML_P2P_STATUS_NOT_SUPPORTED});
  }
  wire::ViewReply reply;
  reply.devices = {Device(0), Device(1), Device(2)};
  reply.devices[0].peers = {1, 2};
  reply.devices[0].atomic_peers = {1};
  reply.devices[1].peers = {0};
  reply.devices[0].links = {{0, 7, 1, 0, "00010001:AB:06.0"}};
  server.SetReply(reply);
  AwaitDevices(3);
  nvmlDevice_t third = nullptr;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &third), NVML_SUCCESS);
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_READ), unsigned{NVML_P2P_STATUS_OK});
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_WRITE), unsigned{NVML_P2P_STATUS_OK});
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_NVLINK), unsigned{NVML_P2P_STATUS_OK});
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_ATOMICS), unsigned{NVML_P2P_STATUS_OK});
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_PCI), unsigned{NVML_P2P_STATUS_UNKNOWN});
  for (unsigned capability : {NVML_P2P_CAPS_INDEX_NVLINK, NVML_P2P_CAPS_INDEX_ATOMICS}) {
    EXPECT_EQ(Status(first, third, capability), unsigned{NVML_P2P_STATUS_NOT_SUPPORTED});
    EXPECT_EQ(Status(second, first, capability), unsigned{NVML_P2P_STATUS_NOT_SUPPORTED});
  }
  EXPECT_EQ(Status(second, third, 0), unsigned{NVML_P2P_STATUS_NOT_SUPPORTED});
  unsigned status = 0;
  EXPECT_EQ(nvmlDeviceGetP2PStatus(first, second, NVML_P2P_CAPS_INDEX_UNKNOWN + 1, &status),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlTest, LinksAreThoseOfTheServer) {
  wire::ViewReply reply;
  reply.devices = {Device(0), Device(1), Device(2)};
  reply.devices[0].peers = {1};
  reply.devices[0].links = {{2, 7, 1, NVML_NVLINK_DEVICE_TYPE_SWITCH, "00000000:87:00.0"},
                            {3, 7, 4, 255, "fffffff:ffff:ff"}};
  reply.devices[1].links = {{0, 7, 1, NVML_NVLINK_DEVICE_TYPE_SWITCH, "00000000:87:00.0"}};
  server.SetReply(reply);
  AwaitDevices(3);
  EXPECT_EQ(Status(first, second, NVML_P2P_CAPS_INDEX_NVLINK), unsigned{NVML_P2P_STATUS_OK});
  unsigned value = 99;
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first, 2, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first, 1, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(nvmlDeviceGetNvLinkState(first, 64, &value), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetNvLinkCapability(first, 2, 0, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(nvmlDeviceGetNvLinkCapability(first, 3, 0, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(nvmlDeviceGetNvLinkCapability(first, 1, 0, &value), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetNvLinkCapability(first, 2, 6, &value), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemoteDeviceType(first, 2, &value), NVML_SUCCESS);
  EXPECT_EQ(value, unsigned{NVML_NVLINK_DEVICE_TYPE_SWITCH});
  EXPECT_EQ(nvmlDeviceGetNvLinkVersion(first, 2, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 7u);
  nvmlPciInfo_t pci;
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 2, &pci), NVML_SUCCESS);
  EXPECT_STREQ(pci.busId, "00000000:87:00.0");
  EXPECT_EQ(pci.bus, 0x87u);
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(first, 1, &pci), NVML_ERROR_NOT_SUPPORTED);
  std::vector<char> old(sizeof(nvmlPciInfo_t), 'x');
  EXPECT_EQ(nvmlDeviceGetNvLinkRemotePciInfo(first, 3, old.data()), NVML_SUCCESS);
  EXPECT_STREQ(old.data(), "fffffff:ffff:ff");
  EXPECT_EQ(old[offsetof(nvmlPciInfo_t, busId)], 'x');
  nvmlFieldValue_t fields[3] = {};
  fields[0] = {NVML_FI_DEV_NVLINK_GET_STATE, 2, 0, 0, 0, NVML_SUCCESS, 0};
  fields[1] = {NVML_FI_DEV_NVLINK_GET_VERSION, 1, 0, 0, 0, NVML_SUCCESS, 0};
  fields[2].fieldId = 1;
  EXPECT_EQ(nvmlDeviceGetFieldValues(first, 3, fields), NVML_SUCCESS);
  EXPECT_EQ(fields[0].nvmlReturn, NVML_SUCCESS);
  EXPECT_EQ(fields[0].value, 1u);
  EXPECT_EQ(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(fields[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(NvmlTest, ThePrivateTableOfNvidiaSmi) {
  const unsigned char none[16] = {};
  const unsigned char known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                   0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
  const void* table = nullptr;
  EXPECT_EQ(nvmlInternalGetExportTable(&table, none), NVML_ERROR_NOT_FOUND);
  ASSERT_EQ(nvmlInternalGetExportTable(&table, known), NVML_SUCCESS);
  auto* slots = static_cast<const uintptr_t*>(table);
  EXPECT_EQ(slots[0] % sizeof(void*), 0u);
  auto by_index = reinterpret_cast<nvmlReturn_t (*)(unsigned, nvmlDevice_t*)>(slots[81]);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(by_index(1, &found), NVML_SUCCESS);
  EXPECT_EQ(found, second);
  EXPECT_EQ(by_index(2, &found), NVML_ERROR_INVALID_ARGUMENT);
  auto processes = reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, unsigned*, char*)>(slots[213]);
  unsigned count = 1;
  std::vector<char> room(2 * 4128, 'x');
  ASSERT_EQ(processes(first, &count, room.data()), NVML_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(&room[32], "/bin/seventeen");
  EXPECT_EQ(room[4128], 'x');
  for (size_t none_here : {214, 215}) {
    auto others =
        reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, unsigned*, char*)>(slots[none_here]);
    count = 2;
    EXPECT_EQ(others(first, &count, room.data()), NVML_SUCCESS);
    EXPECT_EQ(count, 0u);
  }
  for (size_t slot = 1; slot < slots[0] / sizeof(void*); ++slot) EXPECT_NE(slots[slot], 0u);
}

// A thread asks all the time while others fork: a child must find the library usable, and it asks
// as itself.
TEST_F(NvmlTest, AChildAsksAsItself) {
  std::atomic<bool> done{false};
  std::thread asker([&] {
    unsigned count;
    while (!done) nvmlDeviceGetCount_v2(&count);
  });
  for (int i = 0; i < 100; ++i) {
    pid_t child = fork();
    if (child == 0) {
      unsigned index = 0;
      _exit(nvmlDeviceGetIndex(second, &index) == NVML_SUCCESS && index == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(server.WasAskedBy(child));
  }
  done = true;
  asker.join();
}

}  // namespace
}  // namespace longwire::nvml
