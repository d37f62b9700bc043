// Links as a library beside the driver tells them: one made for the test, with four of them.
#include "server/keeper/nvml/device_links.h"

#include <gtest/gtest.h>

namespace longwire::keeper {
namespace {

// Of the device that the library knows.
const std::string kUuid("\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x01\x02\x03\x04\x05\x06\x07", 16);

TEST(DeviceLinks, ThoseThatAreUp) {
  std::vector<DeviceLink> links = LinksOf(FAKE_NVML_FOLDER "/libcuda.so.1", kUuid);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].number, 1u);
  EXPECT_EQ(links[0].version, 7u);
  EXPECT_EQ(links[0].capabilities, 0b101u);
  EXPECT_EQ(links[0].remote_type, 2u);
  EXPECT_EQ(links[0].remote, "00000000:87:00.0");
  // A link of which only its state is known.
  EXPECT_EQ(links[1].number, 3u);
  EXPECT_EQ(links[1].version, 0u);
  EXPECT_EQ(links[1].capabilities, 0u);
  EXPECT_EQ(links[1].remote_type, 0xffu);
  EXPECT_EQ(links[1].remote, "");
}

TEST(DeviceLinks, NoneOfAnotherDevice) {
  EXPECT_TRUE(LinksOf(FAKE_NVML_FOLDER "/libcuda.so.1", std::string(16, '\0')).empty());
}

TEST(DeviceLinks, NoneWithoutTheLibrary) {
  EXPECT_TRUE(LinksOf("/nowhere/libcuda.so.1", kUuid).empty());
}

}  // namespace
}  // namespace longwire::keeper
