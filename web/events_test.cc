// What is said of two replies that differ.
#include "web/events.h"

#include <gmock/gmock.h>

#include "web/crowd.h"

namespace longwire::web {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Kinds(const Events& events) {
  std::vector<std::string> kinds;
  for (const Event& event : events.all()) kinds.push_back(event.kind);
  return kinds;
}

transport::IdentityFigures* Identity(transport::InspectReply* reply, uint64_t opened,
                                     uint64_t refused) {
  transport::IdentityFigures* one = reply->add_identities();
  one->set_tenant("research");
  one->set_identity("alice");
  one->set_opened(opened);
  one->set_refused(refused);
  return one;
}

TEST(EventsTest, NothingHappens) {
  Events events;
  const auto reply = Crowd(1, 3).Reply(0);
  events.Compare(1, nullptr, reply);
  events.Compare(2, &reply, Crowd(1, 3).Reply(1));
  EXPECT_THAT(events.all(), IsEmpty());
}

TEST(EventsTest, SessionsComeAndGo) {
  Events events;
  const auto two = Crowd(1, 2).Reply(0), three = Crowd(1, 3).Reply(1);
  events.Compare(1, &two, three);
  events.Compare(2, &three, two);
  ASSERT_THAT(Kinds(events), ElementsAre("opened", "ended"));
  EXPECT_THAT(events.all()[0].text, HasSubstr("session 3 of user-2@example.org (tenant-2)"));
  EXPECT_EQ(events.all()[0].tenant, "tenant-2");
  EXPECT_FALSE(events.all()[0].general);
  EXPECT_EQ(events.all()[1].number, 2u);
}

TEST(EventsTest, WhyOneEnded) {
  Events events;
  const auto three = Crowd(1, 3).Reply(0);
  auto two = Crowd(1, 2).Reply(1);
  transport::EndedSession* ended = two.add_ended();
  const transport::Session& gone = three.sessions(2);
  ended->set_id(gone.id());
  ended->set_identity(gone.identity());
  ended->set_program("another of that number");
  ended->set_reason("of the one before it");
  ended = two.add_ended();
  *ended = two.ended(0);
  ended->set_program(gone.program());
  ended->set_reason("an administrator has killed it");
  events.Compare(1, &three, two);
  ASSERT_THAT(events.all(), SizeIs(1));
  EXPECT_THAT(events.all()[0].text, testing::EndsWith(": an administrator has killed it"));
}

TEST(EventsTest, Refusals) {
  Events events;
  auto before = Crowd(1, 0).Reply(0), now = Crowd(1, 0).Reply(1);
  Identity(&before, 5, 1);
  Identity(&now, 5, 3);
  events.Compare(1, &before, now);
  ASSERT_THAT(events.all(), SizeIs(1));
  EXPECT_EQ(events.all()[0].text, "2 sessions were refused to alice (research)");
}

TEST(EventsTest, ASessionThatNobodySaw) {
  Events events;
  auto before = Crowd(1, 0).Reply(0), now = Crowd(1, 0).Reply(1);
  Identity(&before, 5, 0);
  Identity(&now, 6, 0);
  events.Compare(1, &before, now);
  ASSERT_THAT(events.all(), SizeIs(1));
  EXPECT_EQ(events.all()[0].text, "1 session of alice (research) opened and ended within a second");
}

TEST(EventsTest, AnotherDaemonCountsAnew) {
  Events events;
  auto before = Crowd(1, 0).Reply(0), now = Crowd(1, 0).Reply(1);
  Identity(&before, 5, 0);
  Identity(&now, 6, 2);
  now.mutable_daemon()->set_pid(8);
  events.Compare(1, &before, now);
  ASSERT_THAT(events.all(), SizeIs(1));
  EXPECT_EQ(events.all()[0].text, "longwired 1.2.3 was started");
}

TEST(EventsTest, ADaemonThatIsAwayIsSaidOnce) {
  Events events;
  events.Lost(1, "it is away");
  events.Lost(2, "it is away");
  events.Compare(3, nullptr, Crowd(1, 0).Reply(0));
  EXPECT_THAT(Kinds(events), ElementsAre("daemon", "daemon"));
  EXPECT_EQ(events.all()[1].text, "longwired answers again");
}

TEST(EventsTest, DevicesAndDraining) {
  Events events;
  auto before = Crowd(2, 0).Reply(0), now = Crowd(2, 0).Reply(1);
  now.mutable_devices(1)->set_cordoned(true);
  now.mutable_daemon()->set_draining(true);
  events.Compare(1, &before, now);
  EXPECT_THAT(Kinds(events), ElementsAre("daemon", "device"));
  EXPECT_TRUE(events.all()[1].general);
}

TEST(EventsTest, Bounded) {
  Events events;
  const auto none = Crowd(1, 0).Reply(0), many = Crowd(1, 500).Reply(0);
  for (int i = 0; i < 10; ++i) {
    events.Compare(2 * i, &none, many);
    events.Compare(2 * i + 1, &many, none);
  }
  EXPECT_THAT(events.all(), SizeIs(kMaxEvents));
  EXPECT_EQ(events.all().back().number, 10'000u);
}

}  // namespace
}  // namespace longwire::web
