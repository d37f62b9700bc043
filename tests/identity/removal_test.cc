// Sessions whose right ends while they run: they end within a second, and both sides know why.
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::HasSubstr;

constexpr const char* kTenants =
    "resume_grace: 20s\n"
    "tenants:\n"
    "  - name: research\n    identities: [alice, carol]\n"
    "  - name: serving\n    identities: [bob]\n"
    "  - name: operators\n    identities: [boss]\n    admin: true\n";
constexpr milliseconds kWithin{1000};

class RemovalTest : public DaemonTest {
 protected:
  // A program with a session, through a link of its own.
  struct Running {
    std::unique_ptr<Process> link;
    daemon::Program program;

    // What the program hears when its session ends within the time; empty: it goes on.
    std::string LastWords(milliseconds patience = kWithin) {
      auto message = wire::ReceiveMessage(program.socket.get(), patience);
      if (!message) return {};
      return {reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()};
    }
  };

  void SetUp() override {
    DaemonTest::SetUp();
    server_ = authority_.Server({"127.0.0.1"});
    RunCert("revoke");
  }

  void Start(const std::string& configuration = kTenants) { StartDaemon(server_, configuration); }
  void Reload(const std::string& tenants) {
    WriteConfiguration(server_, tenants);
    daemon_->Signal(SIGHUP);
  }
  void RunCert(const std::string& words) {
    Said said = Shell(LONGWIRE " cert " + words + " --dir " + (folder_ / "papers"));
    ASSERT_EQ(said.status, 0) << said.text;
  }

  std::unique_ptr<Running> Open(const transport::TlsFiles& files, const std::string& to = "") {
    auto running = std::make_unique<Running>();
    std::string door = folder_ / ("running-" + std::to_string(++links_));
    running->link = std::make_unique<Process>(
        std::vector<std::string>{LINK, "--server", to.empty() ? address_ : to, "--socket", door,
                                 "--foreground", "--cert", files.certificate, "--key", files.key,
                                 "--ca", files.authority},
        folder_ / "link-log");
    EXPECT_TRUE(daemon::Eventually([&] { return wire::ConnectLocal(door).valid(); }, seconds(20)));
    EXPECT_TRUE(running->program.Open(door)) << running->program.reply.sentence;
    EXPECT_TRUE(running->program.Echo("a few bytes"));
    return running;
  }

  static bool GoesOn(Running& running) { return running.program.Echo("it goes on"); }

  transport::TlsFiles server_;
};

TEST_F(RemovalTest, AnIdentityThatAReloadTakesOut) {
  Start();
  auto alice = Open(authority_.Client("alice")), bob = Open(authority_.Client("bob"));
  Reload(
      "tenants:\n  - name: research\n    identities: [carol]\n"
      "  - name: serving\n    identities: [bob]\n");
  EXPECT_THAT(alice->LastWords(), HasSubstr("the identity 'alice' was taken out of the server's"));
  EXPECT_TRUE(LogSays("the identity 'alice' was taken out of the server's")) << Log();
  EXPECT_TRUE(GoesOn(*bob));
  EXPECT_THAT(ThroughLink(authority_.Client("alice")), HasSubstr("does not know the identity"));
}

TEST_F(RemovalTest, ATenantThatAReloadTakesOut) {
  Start();
  auto alice = Open(authority_.Client("alice")), bob = Open(authority_.Client("bob"));
  Reload("tenants:\n  - name: serving\n    identities: [bob]\n");
  EXPECT_THAT(alice->LastWords(), HasSubstr("the identity 'alice' was taken out of the server's"));
  EXPECT_TRUE(GoesOn(*bob));
}

TEST_F(RemovalTest, AnIdentityOfAnotherTenantNow) {
  Start();
  auto alice = Open(authority_.Client("alice"));
  Reload("tenants:\n  - name: serving\n    identities: [alice]\n");
  EXPECT_THAT(alice->LastWords(), HasSubstr("belongs to the tenant 'serving' now"));
  EXPECT_EQ(ThroughLink(authority_.Client("alice")), "");
}

TEST_F(RemovalTest, ACertificateThatExpires) {
  Start();
  const std::time_t now = std::time(nullptr);
  const std::time_t end = now + 4;
  auto alice = Open(authority_.Client("alice", {now - kHour, end}));
  auto bob = Open(authority_.Client("bob"));
  auto over = std::chrono::system_clock::from_time_t(end + 1);
  auto left = over - std::chrono::system_clock::now();
  EXPECT_THAT(alice->LastWords(std::chrono::ceil<milliseconds>(left) + kWithin),
              HasSubstr("the certificate of 'alice' expired on"));
  EXPECT_GE(std::time(nullptr), end);
  EXPECT_TRUE(LogSays("the certificate of 'alice' expired on")) << Log();
  EXPECT_TRUE(GoesOn(*bob));
}

TEST_F(RemovalTest, AnotherAuthority) {
  Start();
  auto alice = Open(authority_.Client("alice"));
  Authority other(folder_ / "other", "Other authority");
  server_ = other.Server({"127.0.0.1"});
  Reload(kTenants);
  EXPECT_THAT(alice->LastWords(), HasSubstr("of an authority that the server does not trust any"));
}

class RevocationTest : public RemovalTest {
 protected:
  void SetUp() override {
    RemovalTest::SetUp();
    // Behind the other keys of tls.
    revocations_ = "  revocations: " + (folder_ / "papers/revoked.crl") + "\n";
  }
  void Start() { RemovalTest::Start(revocations_ + kTenants); }

  std::string revocations_;
};

TEST_F(RevocationTest, ItsSessionsEndWhenTheListChanges) {
  Start();
  transport::TlsFiles old = authority_.Client("alice");
  auto alice = Open(old), bob = Open(authority_.Client("bob"));
  RunCert("revoke alice");
  EXPECT_THAT(alice->LastWords(), HasSubstr("the certificate of 'alice' (serial "));
  EXPECT_TRUE(LogSays(") was revoked on ")) << Log();
  EXPECT_TRUE(GoesOn(*bob));
  EXPECT_THAT(ThroughLink(old), HasSubstr(") was revoked on "));
  // The user may come back with a new one.
  EXPECT_EQ(ThroughLink(authority_.Client("alice")), "");
}

TEST_F(RevocationTest, AFileThatIsNoListChangesNothing) {
  Start();
  auto alice = Open(authority_.Client("alice"));
  RunCert("revoke alice");
  EXPECT_THAT(alice->LastWords(), HasSubstr(") was revoked on "));
  std::ofstream(folder_ / "papers/revoked.crl") << "no list\n";
  EXPECT_TRUE(LogSays("the certificates that were revoked before stay so")) << Log();
  EXPECT_THAT(
      ThroughLink({folder_ / "papers/alice.crt", folder_ / "papers/alice.key", server_.authority}),
      HasSubstr(") was revoked on "));
}

TEST_F(RevocationTest, AListOfAnotherAuthorityIsRefused) {
  Start();
  Authority other(folder_ / "other", "Other authority");
  Said said = Shell(LONGWIRE " cert revoke --dir " + (folder_ / "other"));
  ASSERT_EQ(said.status, 0) << said.text;
  WriteConfiguration(server_,
                     "  revocations: " + (folder_ / "other/revoked.crl") + "\n" + kTenants);
  daemon_->Signal(SIGHUP);
  EXPECT_TRUE(LogSays("that the server's authority did not sign")) << Log();
  EXPECT_TRUE(LogSays("refused: all stays as it was")) << Log();
}

}  // namespace
}  // namespace longwire::identity
