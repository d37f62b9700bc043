// How long programs have waited, by the placer's clock.
#include "server/pool/ages.h"

#include <gtest/gtest.h>

namespace longwire::pool {
namespace {

using std::chrono::seconds;

Waiter WaiterOf(const std::string& number, int64_t created, const std::string& ticket_hash) {
  Waiter waiter;
  waiter.number = number;
  waiter.created = created;
  waiter.request.set_ticket_hash(ticket_hash);
  return waiter;
}

class AgesTest : public ::testing::Test {
 protected:
  scheduler::pool::Wish Ask(const Waiter& waiter, seconds at) {
    Directory directory;
    directory.waiters = {waiter};
    ages_.Look(directory, start_ + at);
    scheduler::pool::Wish wish = WishOf(waiter);
    ages_.Fill(waiter, &wish);
    return wish;
  }

  const Ages::Clock::time_point start_ = Ages::Clock::now();
  Ages ages_{seconds(60)};
};

TEST_F(AgesTest, WaitingCountsFromTheFirstRequest) {
  EXPECT_EQ(Ask(WaiterOf("a1", 5, "t"), seconds(0)).waited, 0u);
  const auto wish = Ask(WaiterOf("a1", 5, "t"), seconds(40));
  EXPECT_EQ(wish.waited, 40u);
  EXPECT_EQ(wish.age, 5u);
}

TEST_F(AgesTest, AnotherFrontGoesOnWithTheAge) {
  Ask(WaiterOf("a1", 5, "t"), seconds(0));
  ages_.Look({}, start_ + seconds(30));  // its front has died
  const auto wish = Ask(WaiterOf("a1", 90, "t"), seconds(50));
  EXPECT_EQ(wish.age, 5u);
  EXPECT_EQ(wish.waited, 50u);
}

TEST_F(AgesTest, AfterTheGraceOrWithAnotherTicketItIsNew) {
  Ask(WaiterOf("a1", 5, "t"), seconds(0));
  EXPECT_EQ(Ask(WaiterOf("a1", 90, "another"), seconds(10)).age, 90u);
  ages_.Look({}, start_ + seconds(71));
  EXPECT_EQ(Ask(WaiterOf("a1", 95, "another"), seconds(72)).age, 95u);
}

TEST_F(AgesTest, DevicesEndWithTheirLastLimit) {
  Directory directory;
  Claim& limited = directory.claims["h"]["b1"];
  limited.add_devices(0);
  limited.set_time_limit(100);
  Claim& endless = directory.claims["h"]["b2"];
  endless.add_devices(1);
  endless.set_tenant("t");
  endless.set_program("train");
  ages_.Look(directory, start_);
  ages_.Look(directory, start_ + seconds(30));
  scheduler::pool::HostState host;
  host.name = "h";
  host.devices.resize(2);
  host.devices[1].ordinal = 1;
  ages_.Fill(directory, &host);
  EXPECT_EQ(host.devices[0].ends, Ages::Seconds(start_) + 100);
  EXPECT_EQ(host.devices[1].ends, scheduler::pool::kNever);
  EXPECT_TRUE(host.programs.contains(scheduler::pool::KindOf("t", "train")));
}

}  // namespace
}  // namespace longwire::pool
