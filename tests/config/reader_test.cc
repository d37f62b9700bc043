// What the reader accepts and what becomes of it.
#include <gtest/gtest.h>

#include "server/config/config.h"
#include "tests/config/reading.h"

namespace longwire::config {
namespace {

TEST(ReaderTest, TakesEveryKeyOver) {
  Config config = Good(FileText(EVERY_KEY));
  ASSERT_EQ(config.listen_size(), 2);
  EXPECT_EQ(ListenAddresses(config)[1].Text(), "[::1]:7001");
  EXPECT_EQ(LocalSocketPath(config), "/run/x/door");
  EXPECT_EQ(config.tls().certificate(), "/my files/c.pem");
  EXPECT_TRUE(config.insecure_listen_anywhere());
  EXPECT_EQ(config.driver(), "/usr/lib/libcuda.so.1");
  EXPECT_EQ(config.warden(), "/run/x/warden");
  EXPECT_EQ(config.warm_workers(), 3u);
  EXPECT_EQ(config.devices(1).device(), 5u);
  EXPECT_TRUE(config.devices(1).has_warm_workers());
  EXPECT_FALSE(config.devices(0).has_warm_workers());
  EXPECT_EQ(config.software_device().memory(), uint64_t{8} << 30);
  EXPECT_EQ(config.placement(), pack);
  EXPECT_EQ(config.scheduler().policy(), weighted_fair);
  EXPECT_EQ(config.scheduler().turn(), 500'000u);
  EXPECT_EQ(config.scheduler().longest_wait(), 1'000'000'000u);
  EXPECT_FALSE(config.scheduler().enabled());
  const Tenant& serving = config.tenants(0);
  EXPECT_EQ(serving.identities(1), "uid:0");
  EXPECT_EQ(serving.priority(), latency_critical);
  EXPECT_EQ(serving.memory(), uint64_t{40} << 30);
  EXPECT_TRUE(serving.admin());
  EXPECT_TRUE(serving.monitor());
  EXPECT_EQ(config.tenants(1).identities(0), "trainer");
  EXPECT_EQ(config.tenants(1).bytes_in_flight(), 256u << 20);
  EXPECT_EQ(config.max_sessions(), 12u);
  EXPECT_EQ(ResumeGrace(config), std::chrono::minutes(1));
  EXPECT_EQ(config.log_level(), debug);
}

TEST(ReaderTest, NothingGivesTheDefaults) {
  for (const char* text : {"", "# only a comment\n", "---\n...\n", "~\n"}) {
    Config config = Good(text);
    EXPECT_EQ(config.listen(0), "127.0.0.1:7411");
    EXPECT_EQ(config.local_socket(), "/run/test/door");
    EXPECT_EQ(config.warden(), "/run/test/warden");
    EXPECT_EQ(config.max_sessions(), 256u);
    EXPECT_EQ(ResumeGrace(config), std::chrono::seconds(30));
    EXPECT_EQ(config.scheduler().turn(), 10'000'000u);
    EXPECT_EQ(config.software_device().count(), 1u);
    EXPECT_FALSE(config.software_device().has_memory());
    EXPECT_FALSE(config.has_tls());
    EXPECT_EQ(config.tenants_size(), 0);
  }
}

TEST(ReaderTest, OneValueIsAListOfOne) {
  Config config = Good("listen: localhost:7000\nlocal_socket: none\n");
  ASSERT_EQ(config.listen_size(), 1);
  EXPECT_EQ(config.listen(0), "localhost:7000");
  EXPECT_EQ(LocalSocketPath(config), "");
}

constexpr const char* kFormerName = "door";

TEST(ReaderTest, AFormerNameIsAcceptedWithAWarning) {
  Problems problems;
  const std::string former(kFormerName);
  Draft draft = ReadCompletely("driver: auto\n" + former + ": /run/x/door\n", &problems);
  EXPECT_EQ(problems.Text(), "");
  EXPECT_EQ(LocalSocketPath(draft.config), "/run/x/door");
  ASSERT_EQ(draft.warnings.size(), 1u);
  EXPECT_EQ(draft.warnings[0],
            "c.yaml:2:1: '" + former + "' is the former name of 'local_socket': rename the key");
  draft = ReadCompletely("local_socket: /run/x/door\n", &problems);
  EXPECT_EQ(LocalSocketPath(draft.config), "/run/x/door");
  EXPECT_TRUE(draft.warnings.empty());
}

TEST(ReaderTest, BothNamesOfAKeyAreAProblem) {
  const std::string former(kFormerName);
  const std::string sentence = "c.yaml:2:1: '" + former +
                               "' is the former name of 'local_socket'; expected one of the two ('";
  EXPECT_EQ(Errors("local_socket: none\n" + former + ": none\n"),
            sentence + "local_socket' is in line 1)\n");
  EXPECT_EQ(Errors(former + ": none\nlocal_socket: none\n"),
            sentence + former + "' is in line 1)\n");
}

TEST(ReaderTest, UnitsOfSizesAndTimes) {
  EXPECT_EQ(Good("software_device: {memory: 2097152}").software_device().memory(), 2u << 20);
  EXPECT_EQ(Good("software_device: {memory: 4096KiB}").software_device().memory(), 4u << 20);
  EXPECT_EQ(Good("software_device: {memory: 1TiB}").software_device().memory(), uint64_t{1} << 40);
  EXPECT_EQ(Good("resume_grace: 0").resume_grace(), 0u);
  EXPECT_EQ(Good("resume_grace: 1 h").resume_grace(), 3'600'000'000'000u);
  EXPECT_EQ(Good("resume_grace: 20ns").resume_grace(), 20u);
}

TEST(ReaderTest, WindowsLineEndsAndAByteOrderMarkDoNotMatter) {
  EXPECT_EQ(Good("\xEF\xBB\xBFmax_sessions: 3\r\nwarm_workers: 2\r\n").max_sessions(), 3u);
}

TEST(ReaderTest, WhatIsNotAFile) {
  EXPECT_EQ(ErrorsOfFile("/nonexistent/longwired.yaml"),
            "/nonexistent/longwired.yaml: cannot be read: No such file or directory\n");
  EXPECT_NE(ErrorsOfFile("/tmp").find("/tmp: cannot be read"), std::string::npos);
}

TEST(ReaderTest, TheFirstTwentyMistakesAreTold) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "nonsense" + std::to_string(i) + ": 1\n";
  std::string errors = Errors(text);
  EXPECT_NE(errors.find("c.yaml:20:1: unknown key 'nonsense19'"), std::string::npos) << errors;
  EXPECT_EQ(errors.find("nonsense20"), std::string::npos) << errors;
  EXPECT_TRUE(errors.ends_with("\nand 10 more\n")) << errors;
}

TEST(ReaderTest, AMistakeDoesNotHideAnother) {
  EXPECT_EQ(Errors("tenants:\n  - weight: 0\n    name: a b\nwarm_workers: 65\nlog_level: loud\n"),
            "c.yaml:2:13: tenants.weight: expected a number from 1 to 1000, found '0'\n"
            "c.yaml:3:11: tenants.name: expected a name of letters, digits, '-', '_' and '.', at "
            "most 64, found 'a b'\n"
            "c.yaml:4:15: warm_workers: expected a number from 0 to 64, found '65'\n"
            "c.yaml:5:12: log_level: expected error, warning, info or debug, found 'loud'\n");
}

TEST(ReaderTest, AFileThatIsTooLargeIsNotRead) {
  std::string text(size_t{1} << 20, '#');
  EXPECT_EQ(Errors(text), "");
  EXPECT_EQ(Errors(text + "#"), "c.yaml: larger than 1 MiB; that is no configuration file\n");
}

TEST(ReaderTest, DepthIsRefusedEarly) {
  const std::string sentence =
      "more than 16 lists and mappings one within the other; that is no configuration file\n";
  EXPECT_EQ(Errors("a: " + std::string(20, '[') + std::string(20, ']')),
            "c.yaml:1:19: " + sentence);
  EXPECT_EQ(Errors(std::string(1000, '{')), "c.yaml:1:16: " + sentence);
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(Errors(nested), "c.yaml:17:17: " + sentence);
}

TEST(ReaderTest, ManyValuesAreRefused) {
  std::string text = "listen: [";
  for (int i = 0; i < 200'000; ++i) text += "a,";
  std::string errors = Errors(text + "a]");
  EXPECT_NE(errors.find("more than 200000 values"), std::string::npos) << errors.substr(0, 300);
}

TEST(ReaderTest, SentencesAreShortAndOfOneLine) {
  EXPECT_EQ(Errors("log_level: \"a\\nb\\e[31m\"\n"),
            "c.yaml:1:12: log_level: expected error, warning, info or debug, found 'a?b?[31m'\n");
  // Cut between characters.
  EXPECT_EQ(Errors("driver: x" + std::string(58, 'y') + "\u00e9\u00e9\n"),
            "c.yaml:1:9: driver: expected auto, software or the absolute path of a driver library, "
            "found 'x" +
                std::string(58, 'y') + "...'\n");
  for (const char* text : {"listen: \"[::\\n]:x\"", "metrics: *"}) {
    EXPECT_LT(Errors(text + std::string(100'000, 'a')).size(), 1100u);
  }
}

TEST(ReaderTest, ValuesAreOfOneLine) {
  for (const char* text : {"local_socket: \"/a\\nb\"", "local_socket: \"/a\n\n  b\"",
                           "tenants: [{name: a, identities: "
                           "\"x\\ty\"}]",
                           "tls: {certificate: \"/\\0\", key: /k, authority: /a}"}) {
    EXPECT_NE(Errors(text).find("control character"), std::string::npos) << Errors(text);
  }
}

TEST(ReaderTest, BytesThatAreNoText) {
  EXPECT_EQ(Errors("local_socket: none\nlisten: \xff\n"),
            "c.yaml:2:9: expected UTF-8, found a byte that is none\n");
  // Overlong, a surrogate, beyond the last character, cut off.
  for (const char* bad : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    EXPECT_EQ(Errors(std::string("a: ") + bad),
              "c.yaml:1:4: expected UTF-8, found a byte that is none\n");
  }
  EXPECT_EQ(Errors(std::string("local_socket: none\n\0listen: x", 28)),
            "c.yaml:2:1: expected text, found the control character 0\n");
  // What one library takes for the end of the file.
  EXPECT_EQ(Errors("local_socket: none\n\x04nonsense: x"),
            "c.yaml:2:1: expected text, found the control character 4\n");
  EXPECT_EQ(Errors("a: b\rc: d\n"), "c.yaml:1:5: expected text, found the control character 13\n");
}

}  // namespace
}  // namespace longwire::config
