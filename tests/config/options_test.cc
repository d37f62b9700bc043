// The command line of longwired: it wins over the file, and the whole is checked.
#include "server/daemon/settings/options.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace longwire::daemon {
namespace {

class OptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/longwire-options-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    file_ = std::string(folder) + "/longwired.yaml";
  }
  void TearDown() override {
    unlink(file_.c_str());
    rmdir(file_.substr(0, file_.rfind('/')).c_str());
  }
  void WriteFile(const std::string& text) { std::ofstream(file_) << text; }

  // What longwired would use; what is wrong, in `problems_`.
  config::Config Configured(std::vector<std::string> words,
                            const std::string& system_file = "/nonexistent") {
    words.insert(words.begin(), "longwired");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    Refusal refusal;
    config::Problems problems;
    auto command_line =
        ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(), &refusal);
    EXPECT_TRUE(command_line) << refusal.text;
    if (!command_line) return {};
    config::Draft draft = Configure(*command_line, &problems, system_file);
    problems_ = problems.Text();
    warnings_ = draft.warnings;
    return draft.config;
  }

  std::string file_;
  std::string problems_;
  std::vector<std::string> warnings_;
};

TEST_F(OptionsTest, OptionsWinOverTheFile) {
  WriteFile("listen: [127.0.0.1:1, 127.0.0.1:2]\nwarm_workers: 5\ndriver: auto\n");
  config::Config config = Configured({"--config", file_, "--listen", "127.0.0.1:3",
                                      "--listen=127.0.0.1:4", "--warm-workers", "0"});
  EXPECT_EQ(problems_, "");
  ASSERT_EQ(config.listen_size(), 2);
  EXPECT_EQ(config.listen(0), "127.0.0.1:3");
  EXPECT_EQ(config.listen(1), "127.0.0.1:4");
  EXPECT_EQ(config.warm_workers(), 0u);
  EXPECT_EQ(config.driver(), "auto");
}

TEST_F(OptionsTest, TheSystemsFileIsReadWhenItIsThereAndNoOtherIsGiven) {
  EXPECT_EQ(Configured({}, file_).max_sessions(), 256u);
  EXPECT_EQ(problems_, "");
  WriteFile("max_sessions: 7\n");
  EXPECT_EQ(Configured({}, file_).max_sessions(), 7u);
  EXPECT_EQ(Configured({"--config", "/dev/null"}, file_).max_sessions(), 256u);
  EXPECT_EQ(problems_, "");
}

TEST_F(OptionsTest, AFileThatIsGivenHasToBeThere) {
  Configured({"--config", file_});
  EXPECT_EQ(problems_, file_ + ": cannot be read: No such file or directory\n");
}

TEST_F(OptionsTest, AFormerNameIsAcceptedWithAWarning) {
  EXPECT_EQ(Configured({"--local-socket", "/run/x/new"}).local_socket(), "/run/x/new");
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(Configured({"--door", "/run/x/old"}).local_socket(), "/run/x/old");
  EXPECT_EQ(problems_, "");
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "--door is the former name of --local-socket: use that option"});
  // An option wins over the file, whichever name each has.
  WriteFile("local_socket: /run/x/file\n");
  EXPECT_EQ(Configured({"--config", file_, "--door", "none"}).local_socket(), "none");
  EXPECT_EQ(problems_, "");
}

TEST_F(OptionsTest, BothNamesOfAnOptionAreAProblem) {
  for (bool former_first : {true, false}) {
    std::vector<std::string> words = {"--door", "/run/a", "--local-socket", "/run/b"};
    if (!former_first) std::rotate(words.begin(), words.begin() + 2, words.end());
    Configured(words);
    EXPECT_EQ(problems_,
              "--door: is the former name of --local-socket, which is given too; expected one of "
              "the two\n");
  }
}

TEST_F(OptionsTest, MistakesOfBothAreReported) {
  WriteFile("warm_workers: many\n");
  Configured({"--config", file_, "--listen", "nowhere:port", "--log-level", "loud"});
  EXPECT_EQ(problems_,
            "--listen: expected host:port, found 'nowhere:port' ('port' in 'nowhere:port' is no "
            "port; it is a number from 0 to 65535)\n"
            "--log-level: expected error, warning, info or debug, found 'loud'\n" +
                file_ + ":1:15: warm_workers: expected a number from 0 to 64, found 'many'\n");
}

TEST_F(OptionsTest, PlaintextBeyondThisHostIsRefusedUnlessToldOtherwise) {
  Configured({"--listen", "127.0.0.1:7411", "--listen", "0.0.0.0:7411"});
  EXPECT_NE(problems_.find("--listen: listen: expected an address of this host alone"),
            std::string::npos)
      << problems_;
  EXPECT_NE(problems_.find("--insecure-listen-anywhere"), std::string::npos);
  Configured({"--listen", "0.0.0.0:7411", "--insecure-listen-anywhere"});
  EXPECT_EQ(problems_, "");
}

TEST_F(OptionsTest, WordsThatAreNoOptions) {
  char name[] = "longwired";
  char word[] = "serve";
  char* arguments[] = {name, word, nullptr};
  Refusal refusal;
  EXPECT_FALSE(ParseCommandLine(2, arguments, &refusal));
  EXPECT_EQ(refusal.text, "longwired: unexpected argument serve; see longwired --help\n");
  EXPECT_EQ(refusal.status, 2);
}

}  // namespace
}  // namespace longwire::daemon
