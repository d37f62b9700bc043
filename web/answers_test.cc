// What a viewer gets to see, and what not.
#include "web/answers.h"

#include <gmock/gmock.h>

#include "web/crowd.h"

namespace longwire::web {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kStart = 1'800'000'000;

class AnswersTest : public testing::Test {
 protected:
  void Feed(int seconds, int sessions = 20) {
    for (int i = 0; i < seconds; ++i) {
      auto reply = std::make_shared<transport::InspectReply>(Crowd(2, sessions).Reply(i));
      for (int k = 0; k < 10; ++k) {
        reply->add_tenants()->set_name("tenant-" + std::to_string(k));
      }
      transport::IdentityFigures* one = reply->add_identities();
      one->set_identity("stranger");
      one->set_refused(static_cast<uint64_t>(i));
      sampler_.Take(kStart + i, std::move(reply));
    }
  }
  std::string Now(const Viewer& viewer) { return NowJson(sampler_, viewer, 0); }

  const DaemonClient nobody_{std::vector<std::string>{}};
  Sampler sampler_{nobody_};
  const Viewer admin_{"", "", true};
  const Viewer user_{"user-3@example.org", "tenant-3", false};
};

TEST_F(AnswersTest, AnAdministratorSeesAll) {
  Feed(3);
  const std::string answer = Now(admin_);
  EXPECT_THAT(answer, HasSubstr("\"tenant\":\"tenant-4\""));
  EXPECT_THAT(answer, HasSubstr("refused to stranger"));
  EXPECT_THAT(answer, HasSubstr("\"waiting\":[{\"session\":"));
}

TEST_F(AnswersTest, ATenantSeesItsOwnAlone) {
  Feed(3);
  Feed(1, 0);
  for (const std::string& answer :
       {Now(user_), MemoryJson(sampler_, user_, {1, 1'800'000'000, 1'800'000'010, 10})}) {
    EXPECT_THAT(answer, HasSubstr("\"tenant\":\"tenant-3\""));
    for (int other : {0, 1, 2, 4, 5, 6, 7, 8, 9}) {
      EXPECT_THAT(answer, Not(HasSubstr("tenant-" + std::to_string(other))));
      EXPECT_THAT(answer, Not(HasSubstr("user-" + std::to_string(other) + "@")));
    }
    EXPECT_THAT(answer, Not(HasSubstr("stranger")));
  }
  EXPECT_THAT(Now(user_), HasSubstr("\"latencies\":null"));
}

TEST_F(AnswersTest, OfThePoolATenantSeesTheHostsAndItsOwnInTheQueue) {
  Feed(1);
  EXPECT_THAT(Now(admin_), HasSubstr("\"pool\":null")) << "of a server that is in none";
  auto reply = std::make_shared<transport::InspectReply>(Crowd(1, 1).Reply(1));
  Crowd::AddPool(&*reply);
  sampler_.Take(kStart + 1, reply);
  const std::string all = Now(admin_), own = Now(user_);
  EXPECT_THAT(all, HasSubstr("\"host\":\"gpu2\",\"in_pool\":true"));
  EXPECT_THAT(all, HasSubstr("\"withdrawn_by\":\"operator@example.org\""));
  EXPECT_THAT(all, HasSubstr("\"place\":1,\"waited_seconds\":100,\"tenant\":\"tenant-4\""));
  EXPECT_THAT(own, HasSubstr("\"host\":\"gpu2\",\"in_pool\":true"));
  EXPECT_THAT(own, HasSubstr("\"place\":2,\"waited_seconds\":100,\"tenant\":\"tenant-3\""));
  EXPECT_THAT(own, Not(HasSubstr("tenant-4")));
  EXPECT_THAT(own, Not(HasSubstr("operator@")));
}

TEST_F(AnswersTest, WhoHasNoTenantSeesNobodys) {
  Feed(3);
  const std::string answer = Now({"somebody", "", false});
  EXPECT_THAT(answer, HasSubstr("\"sessions\":[]"));
  EXPECT_THAT(answer, Not(HasSubstr("tenant-")));
}

TEST_F(AnswersTest, NamesAreEscaped) {
  auto reply = std::make_shared<transport::InspectReply>(Crowd(1, 1).Reply(0));
  reply->mutable_sessions(0)->set_program("</script>\"\n\xff\x1b[2J");
  sampler_.Take(kStart, reply);
  const std::string answer = Now(admin_);
  EXPECT_THAT(answer, HasSubstr("</script>\\\""));
  for (const char* bad : {"\n", "\x1b", "\xff"}) EXPECT_THAT(answer, Not(HasSubstr(bad)));
}

TEST_F(AnswersTest, ADaemonThatIsAway) {
  EXPECT_THAT(Now(admin_), HasSubstr("\"picture\":null"));
  Feed(1);
  sampler_.Fail(kStart + 1, "it is \"away\"");
  EXPECT_THAT(Now(admin_), HasSubstr("\"problem\":\"it is \\\"away\\\"\""));
  EXPECT_THAT(Now(admin_), Not(HasSubstr("\"picture\":null")));
  Feed(2);
  EXPECT_THAT(Now(admin_), HasSubstr("\"problem\":null"));
}

TEST_F(AnswersTest, OnlyEventsThatAreNew) {
  Feed(1, 0);
  Feed(2, 1);
  EXPECT_THAT(Now(admin_), HasSubstr("\"kind\":\"opened\""));
  EXPECT_THAT(NowJson(sampler_, admin_, 100), HasSubstr("\"events\":[]"));
}

}  // namespace
}  // namespace longwire::web
