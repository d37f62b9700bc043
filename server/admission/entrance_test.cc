#include "server/admission/entrance.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/config/config.h"

namespace longwire::admission {
namespace {

using Entry = Entrance::Entry;

config::Config TwoUsers() {
  config::Config config;
  config::Tenant* tenant = config.add_tenants();
  tenant->set_name("both");
  tenant->add_identities("a");
  tenant->add_identities("b");
  config.set_max_sessions(8);
  config.mutable_admission()->set_waiting(10);
  config.mutable_admission()->set_waiting_of_identity(6);
  config.mutable_admission()->set_waiting_of_address(8);
  config::FillDefaults("/run/test", &config);
  return config;
}

TEST(EntranceTest, AFloodOfStreamsLeavesRoomForOthersAndForResumes) {
  config::LiveConfig live(TwoUsers());
  Entrance entrance(live);
  std::vector<Entrance::StreamShares> held;
  auto flood = [&](const std::string& identity, const std::string& peer) {
    size_t entered = 0;
    for (int i = 0; i < 100; ++i) {
      auto shares = entrance.EnterStream(identity, peer, 0);
      if (!shares) continue;
      held.push_back(std::move(*shares));
      ++entered;
    }
    return entered;
  };
  EXPECT_EQ(flood("a", "192.0.2.1:1"), 6u);
  EXPECT_EQ(flood("c", "192.0.2.1:2"), 2u);  // the address's last ones
  EXPECT_EQ(flood("b", "192.0.2.2:1"), 2u);  // the last ones of all
  EXPECT_FALSE(entrance.EnterStream("d", "192.0.2.3:1", 0));
  EXPECT_TRUE(entrance.EnterStream("d", "192.0.2.3:1", 1));
  EXPECT_TRUE(entrance.EnterStream("d", "192.0.2.1:9", 1));
  EXPECT_EQ(entrance.figures().streams, 10u);
}

TEST(EntranceTest, OneIdentityDoesNotTakeAllSessions) {
  config::LiveConfig live(TwoUsers());
  Entrance entrance(live);
  std::string sentence;
  int opened = 0;
  while (entrance.EnterSession("a", 1, &sentence) == Entry::kEntered) ++opened;
  EXPECT_EQ(entrance.EnterSession("a", 1, &sentence), Entry::kTooManyOfIdentity);
  EXPECT_EQ(opened, 6);
  EXPECT_NE(sentence.find("'a' has 6 sessions already"), std::string::npos) << sentence;
  EXPECT_EQ(entrance.EnterSession("b", 1, &sentence), Entry::kEntered);
  entrance.LeaveSession("a", 1);
  EXPECT_EQ(entrance.EnterSession("a", 1, &sentence), Entry::kEntered);
}

TEST(EntranceTest, SessionsGetTheDescriptorsThatTheyNeed) {
  config::LiveConfig live(TwoUsers());
  Entrance entrance(live);
  std::string sentence;
  const size_t all = entrance.figures().descriptors.sessions;
  EXPECT_EQ(entrance.EnterSession("a", all - 1, &sentence), Entry::kEntered);
  EXPECT_EQ(entrance.EnterSession("b", 2, &sentence), Entry::kTooFewDescriptors);
  EXPECT_NE(sentence.find("LimitNOFILE"), std::string::npos) << sentence;
  EXPECT_EQ(entrance.EnterSession("b", 1, &sentence), Entry::kEntered);
}

}  // namespace
}  // namespace longwire::admission
