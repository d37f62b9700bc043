#include "client-shim/connect/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace longwire::shim {
namespace {

TEST(Options, TheEnvironmentWinsOverTheFile) {
  std::string path = ::testing::TempDir() + "client-" + std::to_string(getpid()) + ".conf";
  std::ofstream(path) << "# a comment\n LONGWIRE_SERVER = there:7411 \nLONGWIRE_CA=/ca\n"
                         "LONGWIRE_DISABLE=remap, swap\nno equals sign\n";
  unsetenv("LONGWIRE_SERVER");
  Options options = ReadOptions(path.c_str());
  EXPECT_EQ("there:7411", options.server);
  EXPECT_EQ("/ca", options.identity.authority);
  EXPECT_EQ("remap, swap", options.disabled);
  setenv("LONGWIRE_SERVER", "here:1", 1);
  setenv("LONGWIRE_TRACE", "summary, allocations, every,", 1);
  setenv("LONGWIRE_WINDOW_BASES", "200000000000,0x7e8000000000", 1);
  options = ReadOptions(path.c_str());
  EXPECT_EQ("here:1", options.server);
  EXPECT_TRUE(options.trace_summary);
  EXPECT_TRUE(options.trace_allocations);
  EXPECT_FALSE(options.trace_calls);
  EXPECT_EQ(std::vector<std::string>{"every"}, options.unknown_traces);
  ASSERT_EQ(2u, options.window_bases.size());
  EXPECT_EQ(0x7e8000000000u, options.window_bases[1]);
  for (const char* name : {"LONGWIRE_SERVER", "LONGWIRE_TRACE", "LONGWIRE_WINDOW_BASES"}) {
    unsetenv(name);
  }
  unlink(path.c_str());
  EXPECT_EQ("", ReadOptions(path.c_str()).server);
}

TEST(Options, AFormerNameIsAcceptedWithAWarning) {
  setenv("LONGWIRE_KEEP_UPLOADS", "1048576", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(1048576u, ReadOptions("/nonexistent").cached_uploads);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "longwire: LONGWIRE_KEEP_UPLOADS is the former name of LONGWIRE_CACHE_UPLOADS: "
            "rename the setting\n");
  setenv("LONGWIRE_CACHE_UPLOADS", "2097152", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(2097152u, ReadOptions("/nonexistent").cached_uploads);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("it is ignored"), std::string::npos);
  unsetenv("LONGWIRE_KEEP_UPLOADS");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(2097152u, ReadOptions("/nonexistent").cached_uploads);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  unsetenv("LONGWIRE_CACHE_UPLOADS");
}

TEST(Options, AWaitThatIsNotSaidIsTheServers) {
  const auto wait = [](const char* text) {
    setenv("LONGWIRE_WAIT", text, 1);
    const auto read = ReadOptions("/nonexistent").wait;
    unsetenv("LONGWIRE_WAIT");
    return read;
  };
  EXPECT_EQ(ReadOptions("/nonexistent").wait, std::nullopt);
  EXPECT_EQ(wait("0"), std::chrono::seconds(0));
  EXPECT_EQ(wait("90s"), std::chrono::seconds(90));
  EXPECT_EQ(wait("forever"), std::chrono::hours(24 * 36500));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(wait("5"), std::chrono::seconds(0));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("LONGWIRE_WAIT has to be a duration"),
            std::string::npos);
}

}  // namespace
}  // namespace longwire::shim
