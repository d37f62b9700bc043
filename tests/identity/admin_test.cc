// Who may administer a running daemon, and what becomes of a reload over the network.
#include "server/daemon/admin.h"

#include <unistd.h>

#include "tests/identity/processes.h"

namespace longwire::identity {
namespace {

using daemon::LocalPeer;
using daemon::MayAdminister;
using daemon::Peer;
using testing::HasSubstr;

config::LiveConfig::Snapshot With(const std::vector<std::string>& identities, bool admin) {
  config::Config config;
  if (!identities.empty()) {
    config::Tenant* tenant = config.add_tenants();
    tenant->set_name("listed");
    tenant->set_admin(admin);
    for (const std::string& identity : identities) tenant->add_identities(identity);
  }
  return std::make_shared<const config::Config>(std::move(config));
}

// A caller over the network.
Peer Caller(const std::string& identity, const config::LiveConfig::Snapshot& config) {
  Peer peer;
  peer.address = "127.0.0.1:4711";
  peer.identity = identity;
  peer.tenant = daemon::FindTenant(config, identity);
  if (peer.refused()) peer.refusal = "not known here";
  return peer;
}

TEST(MayAdministerTest, TheServersOwnUserAndRoot) {
  std::string sentence;
  for (const auto& config : {With({}, false), With({"alice"}, false)}) {
    EXPECT_TRUE(MayAdminister(LocalPeer(geteuid(), config), &sentence));
    EXPECT_TRUE(MayAdminister(LocalPeer(0, config), &sentence));
    EXPECT_FALSE(MayAdminister(LocalPeer(geteuid() + 1, config), &sentence));
  }
  std::string other = "uid:" + std::to_string(geteuid() + 1);
  EXPECT_TRUE(MayAdminister(LocalPeer(geteuid() + 1, With({other}, true)), &sentence));
}

TEST(MayAdministerTest, TenantsWithThatRight) {
  std::string sentence;
  EXPECT_TRUE(MayAdminister(Caller("alice", With({"alice"}, true)), &sentence));
  EXPECT_FALSE(MayAdminister(Caller("alice", With({"alice"}, false)), &sentence));
  EXPECT_THAT(sentence, HasSubstr("alice (127.0.0.1:4711) of the tenant 'listed' is none"));
  EXPECT_FALSE(MayAdminister(Caller("bob", With({"alice"}, true)), &sentence));
  EXPECT_EQ(sentence, "not known here");
  EXPECT_FALSE(MayAdminister(Caller("alice", With({}, false)), &sentence));
}

// Any user of this host can make one.
TEST(MayAdministerTest, ConnectionsWithoutTlsFromThisHost) {
  std::string sentence;
  EXPECT_FALSE(MayAdminister(Caller("loopback", With({}, false)), &sentence));
  EXPECT_THAT(sentence, HasSubstr("who need no --server"));
  EXPECT_TRUE(MayAdminister(Caller("loopback", With({"loopback"}, true)), &sentence));
  EXPECT_FALSE(MayAdminister(Caller("loopback", With({"loopback"}, false)), &sentence));
  EXPECT_FALSE(MayAdminister(Caller("", With({}, false)), &sentence)) << "from another host";
}

class AdminTest : public DaemonTest {
 protected:
  static constexpr const char* kTenants =
      "tenants:\n  - {name: operators, identities: olga, admin: true}\n"
      "  - {name: research, identities: alice}\n";

  void Start() {
    server_ = authority_.Server({"127.0.0.1"});
    StartDaemon(server_, kTenants);
  }
  void Change(const std::string& more) { WriteConfiguration(server_, kTenants + more); }

  Said Reload(const transport::TlsFiles& files) {
    std::string command = LONGWIRE " admin reload --server " + address_;
    if (!files.none()) {
      command +=
          " --cert " + files.certificate + " --key " + files.key + " --ca " + files.authority;
    }
    return Shell(command);
  }

  transport::TlsFiles server_;
};

TEST_F(AdminTest, OnlyAdministratorsReload) {
  Start();
  Change("max_sessions: 9\n");
  Said said = Reload(authority_.Client("alice"));
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("only an administrator may do that"));
  EXPECT_THAT(Log(), HasSubstr("administration by alice (127.0.0.1:"));
  said = Reload(authority_.Client("olga"));
  EXPECT_EQ(said.status, 0);
  EXPECT_EQ(said.text, "max_sessions: '256' becomes '9'\n");
  EXPECT_THAT(Log(), HasSubstr("configuration read again for olga (127.0.0.1:"));
  EXPECT_EQ(Reload(authority_.Client("olga")).text, "nothing has changed\n");
}

TEST_F(AdminTest, ABadFileIsAnsweredWithEverySentence) {
  Start();
  Change("max_sessions: 0\nwarm_workers: 3\nlog_levl: info\n");
  Said said = Reload(authority_.Client("olga"));
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("longwire admin: not reloaded\n"));
  EXPECT_THAT(said.text, HasSubstr("max_sessions: expected a number from 1 to 4096, found '0'"));
  EXPECT_THAT(said.text, HasSubstr("warm_workers: expected '1' as long as longwired runs"));
  EXPECT_THAT(said.text, HasSubstr("unknown key 'log_levl'; did you mean 'log_level'?"));
  Change("");
  EXPECT_EQ(Reload(authority_.Client("olga")).text, "nothing has changed\n");
}

// The certificate is read before anything changes: one that is bad leaves the rest as it was too.
TEST_F(AdminTest, ABadCertificateChangesNothing) {
  Start();
  authority_.Server({"127.0.0.1"}, Hours(-9, -3));
  Change("max_sessions: 9\n");
  Said said = Reload(authority_.Client("olga"));
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("expired on"));
  authority_.Server({"127.0.0.1"});
  EXPECT_EQ(Reload(authority_.Client("olga")).text, "max_sessions: '256' becomes '9'\n");
}

TEST_F(AdminTest, WithoutTlsOnlyAsTheConfigurationSays) {
  const std::string may = "tenants: [{name: local, identities: loopback, admin: true}]\n";
  StartDaemon({}, may);
  WriteConfiguration({}, may + "max_sessions: 9\n");
  EXPECT_EQ(Reload({}).text, "max_sessions: '256' becomes '9'\n");
  WriteConfiguration({}, "");
  EXPECT_EQ(Reload({}).text, "tenants: changed\nmax_sessions: '9' becomes '256'\n");
  Said said = Reload({});
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("only an administrator may do that"));
}

TEST_F(AdminTest, ARequestThatThisDaemonDoesNotKnow) {
  Start();
  grpc::ClientContext context;
  transport::AdminReply reply;
  ASSERT_TRUE(transport::Transport::NewStub(Connect(authority_.Client("olga")))
                  ->Admin(&context, {}, &reply)
                  .ok());
  EXPECT_FALSE(reply.done());
  ASSERT_EQ(reply.sentences_size(), 1);
  EXPECT_THAT(reply.sentences(0), HasSubstr("upgrade it"));
}

}  // namespace
}  // namespace longwire::identity
