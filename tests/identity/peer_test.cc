// Identities of those who come without a certificate, and the tenants they belong to.
#include "server/daemon/settings/peer.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace longwire::daemon {
namespace {

using testing::HasSubstr;

config::LiveConfig::Snapshot With(const std::vector<std::string>& identities) {
  config::Config config;
  if (!identities.empty()) {
    config::Tenant* tenant = config.add_tenants();
    tenant->set_name("listed");
    for (const std::string& identity : identities) tenant->add_identities(identity);
  }
  return std::make_shared<const config::Config>(std::move(config));
}

std::string Name(const std::shared_ptr<const config::Tenant>& tenant) {
  return tenant == nullptr ? "none" : tenant->name();
}

TEST(FindTenantTest, WithoutTenantsEverybodyBelongsToOne) {
  for (const char* identity : {"alice", "loopback", "uid:7", ""}) {
    EXPECT_EQ(Name(FindTenant(With({}), identity)), "default");
  }
  EXPECT_FALSE(FindTenant(With({}), "alice")->admin());
}

TEST(FindTenantTest, WithTenantsOnlyThoseListed) {
  auto config = With({"alice", "uid:7", "loopback"});
  for (const char* identity : {"alice", "loopback", "uid:7"}) {
    EXPECT_EQ(Name(FindTenant(config, identity)), "listed");
  }
  for (const char* identity : {"Alice", "alice ", "uid:70", "uid:", ""}) {
    EXPECT_EQ(Name(FindTenant(config, identity)), "none") << identity;
  }
}

TEST(FindTenantTest, ATenantOutlivesItsConfiguration) {
  std::shared_ptr<const config::Tenant> tenant = FindTenant(With({"alice"}), "alice");
  EXPECT_EQ(Name(tenant), "listed");
}

TEST(LocalPeerTest, WithoutTenantsTheDoorIsForItsOwnUser) {
  EXPECT_EQ(Name(LocalPeer(geteuid(), With({})).tenant), "default");
  EXPECT_EQ(Name(LocalPeer(0, With({})).tenant), "default");
  Peer other = LocalPeer(geteuid() + 1, With({}));
  EXPECT_TRUE(other.refused());
  EXPECT_THAT(other.refusal, HasSubstr("'uid:" + std::to_string(geteuid() + 1) + "'"));
}

TEST(LocalPeerTest, WithTenantsTheDoorIsForThoseListed) {
  Peer listed = LocalPeer(77, With({"uid:77"}));
  EXPECT_EQ(Name(listed.tenant), "listed");
  EXPECT_EQ(listed.identity, "uid:77");
  EXPECT_EQ(listed.address, "uid 77");
  EXPECT_EQ(listed.uid, uid_t{77});
  for (uid_t uid : {uid_t{0}, geteuid(), uid_t{7}, uid_t{770}}) {
    Peer other = LocalPeer(uid, With({"uid:77"}));
    EXPECT_TRUE(other.refused());
    EXPECT_THAT(other.refusal, HasSubstr("does not know the identity 'uid:"));
  }
}

TEST(LocalPeerTest, TheDoorOpensForOthersOnlyWhenTheyAreListed) {
  EXPECT_FALSE(NamesOtherUsers(*With({}), 7));
  EXPECT_FALSE(NamesOtherUsers(*With({"alice", "uid:7"}), 7));
  EXPECT_TRUE(NamesOtherUsers(*With({"uid:7", "uid:8"}), 7));
}

}  // namespace
}  // namespace longwire::daemon
