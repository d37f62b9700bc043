#include "client-shim/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "client-shim/properties.h"

namespace longwire::shim {
namespace {

TEST(Options, TheEnvironmentWinsOverTheFile) {
  std::string path = ::testing::TempDir() + "client-" + std::to_string(getpid()) + ".conf";
  std::ofstream(path) << "# a comment\n LONGWIRE_SERVER = there:7411 \nLONGWIRE_CA=/ca\n"
                         "LONGWIRE_DISABLE=one, two\nno equals sign\n";
  unsetenv("LONGWIRE_SERVER");
  Options options = ReadOptions(path.c_str());
  EXPECT_EQ("there:7411", options.server);
  EXPECT_EQ("/ca", options.identity.authority);
  EXPECT_TRUE(options.Disabled("two"));
  EXPECT_FALSE(options.Disabled("three"));
  setenv("LONGWIRE_SERVER", "here:1", 1);
  setenv("LONGWIRE_TRACE", "summary", 1);
  setenv("LONGWIRE_WINDOW_BASES", "200000000000,0x7e8000000000", 1);
  options = ReadOptions(path.c_str());
  EXPECT_EQ("here:1", options.server);
  EXPECT_TRUE(options.trace_summary);
  EXPECT_FALSE(options.trace_calls);
  ASSERT_EQ(2u, options.window_bases.size());
  EXPECT_EQ(0x7e8000000000u, options.window_bases[1]);
  for (const char* name : {"LONGWIRE_SERVER", "LONGWIRE_TRACE", "LONGWIRE_WINDOW_BASES"}) {
    unsetenv(name);
  }
  unlink(path.c_str());
  EXPECT_EQ("", ReadOptions(path.c_str()).server);
}

TEST(VisibleDevices, NumbersAndUuidsUpToTheFirstUnknown) {
  std::vector<wire::DeviceDescription> devices(3);
  devices[1].uuid = {0xab, 0xcd, 0x12};
  devices[2].uuid = {0xef};
  using Ordinals = std::vector<int>;
  EXPECT_EQ((Ordinals{0, 1, 2}), VisibleDevices(nullptr, devices));
  EXPECT_EQ((Ordinals{}), VisibleDevices("", devices));
  EXPECT_EQ((Ordinals{2, 0}), VisibleDevices("2, 0", devices));
  EXPECT_EQ((Ordinals{1}), VisibleDevices("1,-1,0", devices));
  EXPECT_EQ((Ordinals{1}), VisibleDevices("1,7,0", devices));
  EXPECT_EQ((Ordinals{1, 2}), VisibleDevices("GPU-abcd12,GPU-ef", devices));
  EXPECT_EQ((Ordinals{}), VisibleDevices("1,1", devices)) << "named twice";
}

}  // namespace
}  // namespace longwire::shim
