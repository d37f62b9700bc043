// Records as lines, and the file that keeps them: bounded, whole lines, no harm from a full disk.
#include "server/daemon/usage/usage_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "server/daemon/usage/usage_record.h"

namespace longwire::daemon {
namespace {

using testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class UsageFileTest : public testing::Test {
 protected:
  UsageFileTest() {
    char name[] = "/tmp/longwire-usage-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/usage.jsonl";
  }
  ~UsageFileTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_, sentence_;
};

TEST_F(UsageFileTest, LinesAreAppendedAndTheFileIsItsOwnersAlone) {
  UsageFile file(path_, 1 << 20);
  ASSERT_TRUE(file.Append("one", &sentence_));
  ASSERT_TRUE(UsageFile(path_, 1 << 20).Append("two", &sentence_));
  EXPECT_EQ(TextOf(path_), "one\ntwo\n");
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path_).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(UsageFileTest, AllFilesTogetherStayWithinTheLimitAndTheNewestStay) {
  constexpr uint64_t kLimit = 4096;
  UsageFile file(path_, kLimit);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(file.Append("line " + std::to_string(i), &sentence_)) << sentence_;
    uint64_t all = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) all += entry.file_size();
    ASSERT_LE(all, kLimit);
  }
  std::string text;
  for (uint32_t n = UsageFile::kFiles; n-- > 0;) text += TextOf(UsageFile::NameOf(path_, n));
  EXPECT_GT(text.size(), kLimit / 2);
  EXPECT_THAT(text, HasSubstr("line 498\nline 499\n"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".4"));
}

TEST_F(UsageFileTest, APartOfALineStaysALineOfItsOwn) {
  std::ofstream(path_) << "whole\n{\"cut";
  UsageFile file(path_, 1 << 20);
  ASSERT_TRUE(file.Append("next", &sentence_));
  EXPECT_EQ(TextOf(path_), "whole\n{\"cut\nnext\n");
}

// A limit of the process stands in for the end of a disk: the kernel writes a part, then none.
TEST_F(UsageFileTest, WhatDoesNotFitLeavesNoPart) {
  UsageFile file(path_, 1 << 20);
  ASSERT_TRUE(file.Append("short", &sentence_));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_FALSE(file.Append("a line that is too long", &sentence_));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(sentence_, HasSubstr(path_ + " cannot be written: "));
  EXPECT_EQ(TextOf(path_), "short\n");
  EXPECT_TRUE(file.Append("again", &sentence_));
  EXPECT_EQ(TextOf(path_), "short\nagain\n");
}

TEST_F(UsageFileTest, AFolderThatIsMissingOrNoFileIsAnError) {
  EXPECT_FALSE(UsageFile(folder_ + "/none/usage", 1 << 20).Append("x", &sentence_));
  EXPECT_THAT(sentence_, HasSubstr("No such file"));
  EXPECT_FALSE(UsageFile(folder_, 1 << 20).Append("x", &sentence_));
  EXPECT_FALSE(UsageFile("/dev/null", 1 << 20).Append("x", &sentence_));
  EXPECT_TRUE(UsageFile("", 1 << 20).Append("x", &sentence_)) << "switched off";
}

UsageRecord Example() {
  UsageRecord record;
  record.session = 7001;
  record.identity = "alice";
  record.tenant = "research";
  record.program = "./tr\"ain\n\xff";
  record.host = "höst";
  record.pid = 42;
  record.devices = {0, 3};
  record.opened = 1'700'000'000'123'456;
  record.ended = 1'700'000'060'500'000;
  record.gpu_seconds = 1.5;
  record.memory_byte_hours = 1024;
  record.bytes_up = UINT64_MAX;
  record.bytes_down = 7;
  record.calls = 9;
  return record;
}

TEST(UsageRecord, IsOneLineOfJson) {
  EXPECT_EQ(
      JsonLine(Example()),
      "{\"session\":7001,\"identity\":\"alice\",\"tenant\":\"research\","
      "\"program\":\"./tr\\\"ain\\u000a\\ufffd\",\"program_id\":null,"
      "\"host\":\"höst\",\"pid\":42,\"devices\":[0,3],\"opened\":\"2023-11-14T22:13:20.123Z\","
      "\"ended\":\"2023-11-14T22:14:20.500Z\",\"gpu_seconds\":1.500000,"
      "\"memory_byte_hours\":1024.000000,\"memory_estimated\":false,"
      "\"bytes_up\":18446744073709551615,\"bytes_down\":7,\"calls\":9,\"code\":0,"
      "\"reason\":\"its program ended\"}");
}

TEST(UsageRecord, WhatIsNotKnownIsNull) {
  UsageRecord record;
  record.reason = "its worker ended";
  EXPECT_THAT(JsonLine(record), HasSubstr("\"gpu_seconds\":null,\"memory_byte_hours\":null,"));
  EXPECT_THAT(JsonLine(record), HasSubstr("\"reason\":\"its worker ended\"}"));
  for (const auto& [name, value] : UsageFields(record)) EXPECT_NE(value, "null") << name;
}

TEST(UsageRecord, NamesOfOthersAreBounded) {
  UsageRecord record;
  record.program.assign(1 << 20, 'x');
  record.reason.assign(1 << 20, 'y');
  EXPECT_LT(JsonLine(record).size(), 4096u);
}

}  // namespace
}  // namespace longwire::daemon
