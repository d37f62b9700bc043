// Claims of programs on several hosts: who gets which number and ticket, and that nobody else gets
// their devices.
#include "server/pool/new_claims.h"

#include <gtest/gtest.h>

#include "server/pool/accounts.h"
#include "server/pool/keys.h"
#include "server/pool/limits.h"

namespace longwire::pool {
namespace {

Capacity CapacityOf(int devices) {
  Capacity capacity;
  capacity.set_sessions_limit(8);
  capacity.set_format(kUsualFormat);
  for (int i = 0; i < devices; ++i) {
    Device& device = *capacity.add_devices();
    device.set_ordinal(i);
    device.set_total(1000);
  }
  return capacity;
}

Claim ClaimOf(int32_t device, bool alone) {
  Claim claim;
  claim.add_devices(device);
  claim.set_bytes(100);
  claim.set_alone(alone);
  return claim;
}

TEST(Alone, NobodyElseGetsTheDevice) {
  Capacity capacity = CapacityOf(2);
  ASSERT_TRUE(Take(ClaimOf(0, true), &capacity));
  EXPECT_EQ(capacity.format(), kFormatAlone) << "earlier placers place nothing here";
  EXPECT_FALSE(Take(ClaimOf(0, false), &capacity));
  EXPECT_FALSE(Take(ClaimOf(0, true), &capacity));
  ASSERT_TRUE(Take(ClaimOf(1, false), &capacity));
  EXPECT_FALSE(Take(ClaimOf(1, true), &capacity)) << "somebody is there";
  EXPECT_TRUE(Balances({{"1", ClaimOf(0, true)}, {"2", ClaimOf(1, false)}}, capacity));
  EXPECT_FALSE(Balances({{"1", ClaimOf(0, false)}, {"2", ClaimOf(1, false)}}, capacity));
  GiveBack(ClaimOf(0, true), &capacity);
  EXPECT_EQ(capacity.format(), kUsualFormat);
  EXPECT_TRUE(Take(ClaimOf(0, false), &capacity));
}

class NewClaimsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      directory_.hosts[name].host.set_address(std::string(name) + ":1");
      directory_.hosts[name].capacity.set_incarnation(7);
    }
    waiter_.number = "12";
    waiter_.request.set_identity("alice");
    waiter_.request.set_ticket_hash("first");
    waiter_.request.add_further_hashes("second");
    waiter_.request.add_further_hashes("third");
    decision_.host = "a";
    decision_.devices = {0, 1};
    decision_.bytes = 100;
  }

  std::vector<NewClaim> Placed() {
    decision_.more = {{"b", {1}, 200}};
    std::vector<NewClaim> claims = NewClaimsOf(directory_, waiter_, decision_);
    for (const NewClaim& one : claims) directory_.claims[one.host][one.number] = one.claim;
    return claims;
  }

  Directory directory_;
  Waiter waiter_;
  scheduler::pool::Decision decision_;
};

TEST_F(NewClaimsTest, OneHostIsAsEver) {
  const std::vector<NewClaim> claims = NewClaimsOf(directory_, waiter_, decision_);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_FALSE(claims[0].claim.alone());
  EXPECT_EQ(claims[0].claim.places_size(), 0);
  Answer answer;
  TellPlaces(directory_, claims, &answer);
  EXPECT_EQ(answer.host() + answer.address(), "aa:1");
  EXPECT_EQ(answer.places_size(), 0);
}

TEST_F(NewClaimsTest, EachPlaceHasItsNumberAndItsTicket) {
  const std::vector<NewClaim> claims = Placed();
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].number, "12");
  EXPECT_EQ(claims[1].number, "12-e1");
  EXPECT_TRUE(IsNumber(claims[1].number));
  EXPECT_EQ(claims[0].claim.ticket_hash(), "first");
  EXPECT_EQ(claims[1].claim.ticket_hash(), "second");
  EXPECT_EQ(claims[1].claim.bytes(), 200u);
  for (const NewClaim& one : claims) {
    EXPECT_TRUE(one.claim.alone());
    EXPECT_EQ(one.claim.places_size(), 2);
  }
  etcd::pb::TxnRequest request;
  for (const NewClaim& one : claims) Write(one, &request);
  EXPECT_EQ(request.compare_size(), 4);
  EXPECT_EQ(request.success_size(), 4);
}

TEST_F(NewClaimsTest, WhoAsksAgainGetsTheSamePlaces) {
  const std::vector<NewClaim> claims = Placed();
  Answer first, again;
  TellPlaces(directory_, claims, &first);
  ASSERT_TRUE(AnswerOf(directory_, waiter_, "a", &again));
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_EQ(again.places(1).address(), "b:1");
  EXPECT_EQ(again.places(1).devices(), 1u);
  Waiter other = waiter_;
  other.request.set_identity("bob");
  EXPECT_FALSE(AnswerOf(directory_, other, "a", &again));
  directory_.hosts.erase("b");
  EXPECT_FALSE(AnswerOf(directory_, waiter_, "a", &again));
}

class MovesTest : public NewClaimsTest {
 protected:
  void SetUp() override {
    NewClaimsTest::SetUp();
    waiter_.front = "b";
    waiter_.request.clear_further_hashes();
    waiter_.request.set_tenant("research");
    waiter_.request.mutable_from()->set_host("b");
    waiter_.request.mutable_from()->set_number("7");
    Claim& now = directory_.claims["b"]["7"];
    now.set_identity("alice");
    now.set_tenant("research");
  }
};

TEST_F(MovesTest, TheNewClaimNamesTheOldOneWhichHasToBeThere) {
  EXPECT_EQ(WhyNotFrom(directory_, waiter_), "");
  const std::vector<NewClaim> claims = NewClaimsOf(directory_, waiter_, decision_);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].claim.from().number(), "7");
  etcd::pb::TxnRequest request;
  Write(claims[0], &request);
  ASSERT_EQ(request.compare_size(), 3);
  EXPECT_EQ(request.compare(2).key(), "longwire/claim/b/7");
}

TEST_F(MovesTest, NobodyMovesWhatIsAnothersOrIsNotThere) {
  Waiter other = waiter_;
  other.request.set_identity("bob");
  EXPECT_NE(WhyNotFrom(directory_, other), "");
  other = waiter_;
  other.request.set_tenant("teaching");
  EXPECT_NE(WhyNotFrom(directory_, other), "");
  other = waiter_;
  other.front = "a";
  EXPECT_NE(WhyNotFrom(directory_, other), "") << "another host's session";
  other = waiter_;
  other.request.mutable_from()->set_number("8");
  EXPECT_NE(WhyNotFrom(directory_, other), "");
  other.request.clear_from();
  EXPECT_EQ(WhyNotFrom(directory_, other), "") << "it is just opened";
}

TEST_F(MovesTest, ItCountsOnceAsLongAsItHasBoth) {
  directory_.claims["a"]["12"] = NewClaimsOf(directory_, waiter_, decision_)[0].claim;
  EXPECT_EQ(CountSessions(directory_)["research"], 1u);
  directory_.claims["b"].erase("7");
  EXPECT_EQ(CountSessions(directory_)["research"], 1u);
  directory_.claims["b"]["9"] = directory_.claims["a"]["12"];
  EXPECT_EQ(CountSessions(directory_)["research"], 2u);
}

}  // namespace
}  // namespace longwire::pool
