// A bridge's end is opened by the right ticket, for the right session, once, and in time.
#include "server/daemon/bridges/rights.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

class BridgeRightsTest : public ::testing::Test {
 protected:
  // A ticket for the session that has `here_`'s lanes 3 and 4, made for the one with `there_`.
  void SetUp() override {
    offer_ = there_.Offer(1).value();
    ticket_ = here_.Ticket(3, 2, HashToken(offer_), now_).value();
  }

  const BridgeRights::Now now_ = std::chrono::steady_clock::now();
  BridgeRights here_, there_, another_;
  transport::Token offer_{}, ticket_{};
};

TEST_F(BridgeRightsTest, TheRightTicketOpensEachLaneOnce) {
  EXPECT_TRUE(here_.Take(3, ticket_, offer_, now_));
  EXPECT_FALSE(here_.Take(3, ticket_, offer_, now_));
  EXPECT_TRUE(here_.Take(4, ticket_, offer_, now_));
  EXPECT_FALSE(here_.Take(5, ticket_, offer_, now_)) << "it was not made for that lane";
}

TEST_F(BridgeRightsTest, NothingOpensWithoutATicket) {
  EXPECT_FALSE(here_.Take(3, {}, offer_, now_));
  transport::Token other{};
  ASSERT_TRUE(NewToken(&other));
  EXPECT_FALSE(here_.Take(3, other, offer_, now_));
  EXPECT_FALSE(another_.Take(3, ticket_, offer_, now_)) << "it is another session's ticket";
}

TEST_F(BridgeRightsTest, AnotherSessionsOfferOpensNothing) {
  EXPECT_FALSE(here_.Take(3, ticket_, another_.Offer(1).value(), now_));
  EXPECT_FALSE(here_.Take(3, ticket_, {}, now_));
  EXPECT_FALSE(here_.Take(3, ticket_, there_.Offer(2).value(), now_)) << "of another bridge";
}

TEST_F(BridgeRightsTest, ATicketExpires) {
  EXPECT_FALSE(here_.Take(3, ticket_, offer_, now_ + BridgeRights::kTicketTime));
  EXPECT_TRUE(
      here_.Take(3, ticket_, offer_, now_ + BridgeRights::kTicketTime - std::chrono::seconds(1)));
}

TEST_F(BridgeRightsTest, ALaterTicketTakesThePlaceOfTheEarlierOne) {
  const transport::Token later = here_.Ticket(3, 2, HashToken(offer_), now_).value();
  EXPECT_FALSE(here_.Take(3, ticket_, offer_, now_));
  EXPECT_TRUE(here_.Take(3, later, offer_, now_));
}

}  // namespace
}  // namespace longwire::daemon
