// Who is refused, how soon, and what both sides report. After each refusal another client is
// served: the daemon survived.
#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using transport::TlsFiles;

constexpr const char* kTenants = "tenants:\n  - name: research\n    identities: [alice, carol]\n";

class RefusalTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    alice_ = authority_.Client("alice");
  }
  void StartWithTls() { StartDaemon(authority_.Server({"127.0.0.1", "localhost"}), kTenants); }
  void ExpectServed() { EXPECT_EQ(ThroughLink(alice_), ""); }

  // The log names the peer and the reason.
  void ExpectLogged(const std::string& reason) {
    EXPECT_TRUE(LogSays(reason)) << Log();
    std::string log = Log();
    size_t at = log.find(reason);
    std::string line = log.substr(log.rfind('\n', at) + 1, at - log.rfind('\n', at) - 1);
    EXPECT_THAT(line, ContainsRegex(" 127.0.0.1:[0-9]+ was refused"));
    EXPECT_THAT(line, HasSubstr("warning"));
  }
  // A client that does not check its own certificate is refused, too.
  void ExpectRefusedByServer(const TlsFiles& files) {
    transport::InspectReply reply;
    EXPECT_FALSE(Inspect(Connect(files), &reply).ok());
  }
  Said Client(const std::string& arguments) {
    return Shell("timeout 20 openssl s_client </dev/null -connect " + address_ + " -alpn h2 " +
                 "-CAfile " + authority_.certificate() + " " + arguments);
  }

  TlsFiles alice_;
};

TEST_F(RefusalTest, AGoodCertificateIsServed) {
  StartWithTls();
  ExpectServed();
  EXPECT_EQ(ThroughLink(alice_, "localhost:" + std::to_string(port_)), "");
  EXPECT_THAT(Log(), HasSubstr("'alice' of tenant 'research'"));
}

TEST_F(RefusalTest, NoCertificate) {
  StartWithTls();
  EXPECT_THAT(ThroughLink({}), HasSubstr(address_ + " wants TLS, but this client has no "
                                                    "certificate"));
  ExpectRefusedByServer({"", "", authority_.certificate()});
  ExpectLogged("it has no certificate");
  ExpectServed();
}

TEST_F(RefusalTest, AnExpiredCertificate) {
  StartWithTls();
  TlsFiles old = authority_.Client("alice", Hours(-9, -3), "old");
  EXPECT_THAT(ThroughLink(old), AllOf(HasSubstr(old.certificate), HasSubstr("expired on 2")));
  ExpectRefusedByServer(old);
  ExpectLogged("its certificate 'alice' expired on 2");
  ExpectServed();
}

TEST_F(RefusalTest, ACertificateOfTomorrow) {
  StartWithTls();
  TlsFiles early = authority_.Client("alice", Hours(20, 30), "early");
  EXPECT_THAT(ThroughLink(early), HasSubstr("is not valid before 2"));
  ExpectRefusedByServer(early);
  ExpectLogged("its certificate 'alice' is not valid before 2");
  ExpectServed();
}

TEST_F(RefusalTest, AnotherAuthoritysCertificate) {
  StartWithTls();
  Authority other(folder_ / "other", "Other authority");
  TlsFiles files = other.Client("alice");
  files.authority = authority_.certificate();
  EXPECT_THAT(ThroughLink(files), AllOf(HasSubstr("it was issued by 'Other authority'"),
                                        HasSubstr("the server takes those of /CN=Test authority")));
  ExpectLogged("its certificate 'alice' (issued by 'Other authority') is not signed by this");
  ExpectRefusedByServer(files);
  ExpectServed();
}

TEST_F(RefusalTest, AnotherAuthorityOfTheSameName) {
  StartWithTls();
  Authority other(folder_ / "other");
  TlsFiles files = other.Client("alice");
  files.authority = authority_.certificate();
  EXPECT_THAT(ThroughLink(files), HasSubstr("refused this client's certificate"));
  ExpectLogged("is not signed by this server's authority");
  ExpectRefusedByServer(files);
}

TEST_F(RefusalTest, AServersCertificateIsNoClients) {
  StartWithTls();
  ExpectRefusedByServer(authority_.Server({"alice"}, Hours(-1, 9), "thief"));
  ExpectLogged("its certificate 'alice' is not meant for a client");
}

TEST_F(RefusalTest, AnIdentityThatNobodyLists) {
  StartWithTls();
  TlsFiles eve = authority_.Client("eve");
  EXPECT_THAT(ThroughLink(eve), HasSubstr("the server does not know the identity 'eve'"));
  ExpectLogged("the server does not know the identity 'eve'");
  Said status =
      Shell(std::string(LONGWIRE " status --server ") + address_ + " --cert " + eve.certificate);
  EXPECT_EQ(status.status, 1);
  EXPECT_THAT(status.text, HasSubstr("does not know the identity 'eve'"));
  ExpectServed();
}

TEST_F(RefusalTest, NamesThatMeanSomethingElseAreNoIdentities) {
  StartDaemon(authority_.Server({"127.0.0.1"}),
              "tenants:\n  - name: local\n    identities: [loopback, \"uid:0\"]\n");
  // The authority that comes with Longwire signs no such name; another may.
  for (const char* name : {"loopback", "uid:0"}) {
    TlsFiles files = alice_;
    files.certificate = folder_ / "made.crt";
    std::string papers = folder_ / "papers";
    Said made = Shell("openssl req -new -key " + alice_.key + " -subj /CN=" + name +
                      " | openssl x509 -req -CA " + papers + "/ca.crt -CAkey " + papers +
                      "/ca.key -days 1 -out " + files.certificate);
    ASSERT_EQ(made.status, 0) << made.text;
    EXPECT_THAT(ThroughLink(files), HasSubstr("no common name that could be an identity"));
  }
}

TEST_F(RefusalTest, AServerThatIsNotWhoItShouldBe) {
  StartDaemon(authority_.Server({"gpu.example.org", "192.0.2.1"}), kTenants);
  EXPECT_THAT(ThroughLink(alice_), HasSubstr("the certificate of " + address_ +
                                             " is for gpu.example.org, 192.0.2.1, not for "
                                             "127.0.0.1"));
  ExpectLogged("it does not accept this server's certificate");
  Authority other(folder_ / "other", "Other authority");
  TlsFiles files = alice_;
  files.authority = other.certificate();
  EXPECT_THAT(ThroughLink(files),
              AllOf(HasSubstr("('gpu.example.org', issued by 'Test authority')"),
                    HasSubstr("is not signed by the authority in " + files.authority)));
}

TEST_F(RefusalTest, AClientWithACertificateAtAServerWithoutTls) {
  StartDaemon({});
  EXPECT_THAT(ThroughLink(alice_), HasSubstr(address_ + " speaks no TLS 1.3, but this client has a "
                                                        "certificate"));
  ExpectLogged("it begins with TLS, but this server's configuration has no tls");
  EXPECT_EQ(ThroughLink({}), "");
}

TEST_F(RefusalTest, OnlyTls13) {
  StartWithTls();
  std::string papers = "-cert " + alice_.certificate + " -key " + alice_.key;
  EXPECT_THAT(Client("-tls1_3 " + papers).text,
              AllOf(HasSubstr("New, TLSv1.3"), HasSubstr("Verify return code: 0 (ok)")));
  EXPECT_THAT(Client("-tls1_2 " + papers).text,
              AllOf(HasSubstr("New, (NONE)"), Not(HasSubstr("Server certificate"))));
  ExpectLogged("it speaks no TLS 1.3");
}

TEST_F(RefusalTest, KeysThatOthersCanRead) {
  TlsFiles server = authority_.Server({"127.0.0.1"});
  StartDaemon(server, kTenants);
  chmod(alice_.key.c_str(), 0644);
  EXPECT_THAT(ThroughLink(alice_), HasSubstr("run: chmod 600 " + alice_.key));
  Said status =
      Shell(std::string(LONGWIRE " status --server ") + address_ + " --cert " + alice_.certificate);
  EXPECT_EQ(status.status, 1);
  EXPECT_THAT(status.text, HasSubstr("run: chmod 600 " + alice_.key));
  chmod(server.key.c_str(), 0640);
  daemon_.reset();
  Said daemon = Shell(LONGWIRED " --config " + (folder_ / "longwired.yaml"));
  EXPECT_EQ(daemon.status, 1);
  EXPECT_THAT(daemon.text, HasSubstr("run: chmod 600 " + server.key));
}

TEST_F(RefusalTest, StrangersDoNotFillTheLog) {
  StartWithTls();
  for (int i = 0; i < 200; ++i) {
    wire::Descriptor stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    ASSERT_GT(send(stranger.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  }
  ExpectLogged("it began no TLS");
  ExpectServed();
  std::string log = Log();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("it began no TLS", at)) != std::string::npos; ++at) ++lines;
  EXPECT_LT(lines, 100u);
}

}  // namespace
}  // namespace longwire::identity
