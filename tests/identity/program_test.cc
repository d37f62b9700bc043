// What a program's user sees: one sentence on standard error, by the program's own library.
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;

class ProgramTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    StartDaemon(authority_.Server({"127.0.0.1"}),
                "tenants:\n  - name: a\n    identities: [alice]\n");
    // Links that end soon after the test.
    std::ofstream(folder_ / "link") << "#!/bin/sh\nexec " << LINK << " \"$@\" --idle-seconds 1\n";
    chmod((folder_ / "link").c_str(), 0700);
  }

  Said Run(const std::string& options) {
    auto start = Clock::now();
    Said said = Shell("HOME=/nowhere LONGWIRE_RUNTIME_DIR=" + folder_.path() +
                      " LONGWIRE_LINK=" + (folder_ / "link") + " " LONGWIRE " run --server " +
                      address_ + " " + options + " -- " START_CUDA);
    double took = std::chrono::duration<double>(Clock::now() - start).count();
    std::printf("%s after %.0f ms\n", options.c_str(), took * 1000);
    EXPECT_LT(took, 5.0);
    return said;
  }
  // One sentence, then what the program prints.
  void ExpectSentence(const Said& said, const std::string& sentence) {
    EXPECT_THAT(said.text, HasSubstr(sentence));
    EXPECT_THAT(said.text, HasSubstr("cuInit: 100\n"));
    EXPECT_EQ(std::ranges::count(said.text, '\n'), 2) << said.text;
  }
  size_t Links() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::string name = entry.path().filename().string();
      count += name.starts_with("link-") && name.ends_with(".sock.lock");
    }
    return count;
  }
};

TEST_F(ProgramTest, RefusalsReachTheProgramsUser) {
  ExpectSentence(Run(""),
                 "longwire: " + address_ + " wants TLS, but this client has no certificate");
  transport::TlsFiles old = authority_.Client("alice", Hours(-9, -3), "old");
  ExpectSentence(Run("--cert " + old.certificate), "of 'alice' expired on 2");
  transport::TlsFiles eve = authority_.Client("eve");
  ExpectSentence(Run("--cert " + eve.certificate), "the server does not know the identity 'eve'");
  transport::TlsFiles alice = authority_.Client("alice");
  chmod(alice.key.c_str(), 0644);
  ExpectSentence(Run("--cert " + alice.certificate), "run: chmod 600 " + alice.key);
}

// Frameworks take this code as a host without a GPU.
TEST_F(ProgramTest, NobodyThereIsNoDeviceWhateverTheWay) {
  std::string nowhere = "127.0.0.1:" + std::to_string(daemon::FreePort());
  ExpectSentence(Run("--cert none --server " + nowhere), "nothing listens at " + nowhere);
  ExpectSentence(Run("--server unix:/nope"),
                 "longwire: cannot reach unix:/nope: nobody answers at /nope: No such file");
}

TEST_F(ProgramTest, IdentitiesDoNotShareALink) {
  transport::TlsFiles alice = authority_.Client("alice"), eve = authority_.Client("eve");
  std::string place = "--cert " + (folder_ / "papers/used.crt");
  auto use = [&](const std::string& name) {
    for (const char* ending : {".crt", ".key"}) {
      std::filesystem::copy_file(folder_ / ("papers/" + name + ending),
                                 folder_ / (std::string("papers/used") + ending),
                                 std::filesystem::copy_options::overwrite_existing);
    }
  };
  use("alice");
  EXPECT_THAT(Run(place).text, testing::Not(HasSubstr("does not know the identity")));
  EXPECT_EQ(Links(), 1u);
  use("eve");
  ExpectSentence(Run(place), "the server does not know the identity 'eve'");
  EXPECT_EQ(Links(), 2u);
}

}  // namespace
}  // namespace longwire::identity
