// The configuration file: what is accepted, and the exact place and text of each complaint.
#include "server/daemon/config.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

std::string Error(const std::string& text) {
  Config config;
  std::string error;
  bool good = ApplyConfig("c.yaml", text, &config, &error);
  EXPECT_EQ(good, error.empty());
  return error;
}

TEST(ConfigTest, AcceptsEveryKey) {
  Config config;
  std::string error;
  ASSERT_TRUE(ApplyConfig("c.yaml", R"(# a comment
listen:
  - 127.0.0.1:7000
  - "[::1]:7001"
door: /run/x/door
driver: /usr/lib/libcuda.so.1
warden: /run/x/warden
warm_workers: 3
software_device_memory: 8 GiB
log_level: debug
insecure_listen_anywhere: true
max_sessions: 12
resume_grace_seconds: 30
)",
                          &config, &error))
      << error;
  ASSERT_EQ(config.listen.size(), 2u);
  EXPECT_EQ(config.listen[1].Text(), "[::1]:7001");
  EXPECT_EQ(config.door, "/run/x/door");
  EXPECT_EQ(config.driver, "/usr/lib/libcuda.so.1");
  EXPECT_EQ(config.warden, "/run/x/warden");
  EXPECT_EQ(config.warm_workers, 3u);
  EXPECT_EQ(config.software_device_memory, uint64_t{8} << 30);
  EXPECT_EQ(config.log_level, transport::LogLevel::kDebug);
  EXPECT_TRUE(config.insecure_listen_anywhere);
  EXPECT_EQ(config.max_sessions, 12u);
  EXPECT_EQ(config.resume_grace, std::chrono::seconds(30));
}

TEST(ConfigTest, AcceptsNothingAndSingleValues) {
  EXPECT_EQ(Error(""), "");
  EXPECT_EQ(Error("# only a comment\n"), "");
  Config config;
  std::string error;
  ASSERT_TRUE(ApplyConfig("c.yaml", "listen: gpu\ndoor: none\n", &config, &error));
  EXPECT_EQ(config.listen.at(0).Text(), "gpu:7411");
  EXPECT_EQ(config.door, "");
}

struct Wrong {
  const char* text;
  const char* error;
};

constexpr const char* kKeys =
    "; expected one of door, driver, insecure_listen_anywhere, listen, log_level, max_sessions, "
    "resume_grace_seconds, software_device_memory, warden, warm_workers";

TEST(ConfigTest, NamesPlaceAndExpectation) {
  const std::string unknown = std::string("c.yaml:2:1: unknown key 'lissten'").append(kKeys);
  const std::string capital = std::string("c.yaml:1:1: unknown key 'Listen'").append(kKeys);
  const Wrong table[] = {
      {"door: none\nlissten: 127.0.0.1:1\n", unknown.c_str()},
      {"Listen: 127.0.0.1\n", capital.c_str()},
      {"listen: a:1\nwarm_workers: 1\nlisten: b:2\n",
       "c.yaml:3:1: 'listen' stands here a second time"},
      {"warm_workers: many\n",
       "c.yaml:1:15: warm_workers: expected a number from 0 to 64, found 'many'"},
      {"warm_workers: 65\n",
       "c.yaml:1:15: warm_workers: expected a number from 0 to 64, found '65'"},
      {"warm_workers: -1\n",
       "c.yaml:1:15: warm_workers: expected a number from 0 to 64, found '-1'"},
      {"warm_workers: 1.5\n",
       "c.yaml:1:15: warm_workers: expected a number from 0 to 64, found '1.5'"},
      {"warm_workers: [1]\n",
       "c.yaml:1:15: warm_workers: expected a number from 0 to 64, found a list"},
      {"max_sessions: 0\n",
       "c.yaml:1:15: max_sessions: expected a number from 1 to 4096, found '0'"},
      {"max_sessions:   99999999999999999999999\n",
       "c.yaml:1:17: max_sessions: expected a number from 1 to 4096, found "
       "'99999999999999999999999'"},
      {"listen: []\n",
       "c.yaml:1:9: listen: expected host:port or a list of them, found an empty list"},
      {"listen:\n  - 127.0.0.1:7411\n  - 127.0.0.1:port\n",
       "c.yaml:3:5: listen: expected host:port or a list of them, found '127.0.0.1:port' ('port' "
       "in '127.0.0.1:port' is no port; it is a number from 0 to 65535)"},
      {"listen:\n  host: a\n  port: 1\n",
       "c.yaml:2:3: listen: expected host:port or a list of them, found keys with values"},
      {"listen:\n  - [a]\n",
       "c.yaml:2:5: listen: expected host:port or a list of them, found a list"},
      {"log_level: loud\n",
       "c.yaml:1:12: log_level: expected error, warning, info or debug, found 'loud'"},
      {"driver: libcuda.so\n",
       "c.yaml:1:9: driver: expected auto, software or the absolute path of a driver library, "
       "found 'libcuda.so'"},
      {"driver:\n",
       "c.yaml:1:1: driver: expected auto, software or the absolute path of a driver library, "
       "found nothing"},
      {"door: run/door\n", "c.yaml:1:7: door: expected an absolute path or none, found 'run/door'"},
      {"warden: {}\n", "c.yaml:1:9: warden: expected an absolute path, found keys with values"},
      {"insecure_listen_anywhere: maybe\n",
       "c.yaml:1:27: insecure_listen_anywhere: expected true or false, found 'maybe'"},
      {"software_device_memory: 8 GB\n",
       "c.yaml:1:25: software_device_memory: expected a number of bytes, KiB, MiB or GiB, found "
       "'8 GB'"},
      {"software_device_memory: 99999999999999999 GiB\n",
       "c.yaml:1:25: software_device_memory: expected a number of bytes, KiB, MiB or GiB, found "
       "'99999999999999999 GiB'"},
      {"resume_grace_seconds: 1h\n",
       "c.yaml:1:23: resume_grace_seconds: expected a number from 0 to 3600, found '1h'"},
      {"- listen\n", "c.yaml:1:1: expected keys with values, such as 'listen: 127.0.0.1:7411'"},
      {"just words\n", "c.yaml:1:1: expected keys with values, such as 'listen: 127.0.0.1:7411'"},
      {"[a]: b\n", "c.yaml:1:1: a key has to be a word"},
      {"door: none\n---\ndoor: none\n", "c.yaml:3:1: a second document; expected one"},
  };
  for (const Wrong& wrong : table) EXPECT_EQ(Error(wrong.text), wrong.error) << wrong.text;
}

TEST(ConfigTest, PlacesOfWhatIsNotYaml) {
  EXPECT_EQ(Error("door: none\nlisten: [a\n").substr(0, 9), "c.yaml:3:");
  EXPECT_EQ(Error("door: none\n\tlisten: a\n").substr(0, 9), "c.yaml:2:");
  EXPECT_NE(Error("a: b: c\n").find("not YAML"), std::string::npos);
}

TEST(ConfigTest, RefusesPlaintextBeyondThisHost) {
  Config config;
  config.listen = {{"127.0.0.1", 7411}};
  EXPECT_EQ(CheckConfig(config), "");
  config.listen.push_back({"0.0.0.0", 7411});
  EXPECT_NE(CheckConfig(config).find("does not listen at 0.0.0.0:7411"), std::string::npos);
  EXPECT_NE(CheckConfig(config).find("--insecure-listen-anywhere"), std::string::npos);
  config.insecure_listen_anywhere = true;
  EXPECT_EQ(CheckConfig(config), "");
}

TEST(ConfigTest, AFileThatIsNotThere) {
  Config config;
  std::string error;
  EXPECT_FALSE(LoadConfig("/nonexistent/longwired.yaml", &config, &error));
  EXPECT_EQ(error, "/nonexistent/longwired.yaml: cannot be read");
}

}  // namespace
}  // namespace longwire::daemon
