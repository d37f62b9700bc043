// One round trip in sixteen is measured, and told before the next record.
#include <gtest/gtest.h>

#include "client-shim/session/session.h"
#include "client-shim/testing/fake_session.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

using testing::FakeSession;

void Ask(int times) {
  calls::lwMemoryInfo ask;
  for (int i = 0; i < times; ++i) {
    EXPECT_EQ(TheSession().CallAndWait({}, ask).code, CUDA_SUCCESS);
  }
}

TEST(RoundTripsTest, OneInSixteenIsTold) {
  FakeSession& fake = FakeSession::Get();
  fake.Reset();
  Ask(16);  // wherever the count is now, one of these is measured, and the next record tells it
  Ask(1);
  fake.TakeRoundTrips();
  const uint64_t calls_before = TheSession().counts().calls.load();
  auto begun = std::chrono::steady_clock::now();
  Ask(160);
  std::chrono::nanoseconds all = std::chrono::steady_clock::now() - begun;
  auto told = fake.TakeRoundTrips();
  EXPECT_NEAR(static_cast<double>(told.size()), 10, 1);
  for (uint64_t time : told) {
    EXPECT_GT(time, 0u);
    EXPECT_LE(time, static_cast<uint64_t>(all.count()));
  }
  EXPECT_EQ(TheSession().counts().calls.load() - calls_before, 160u) << "they are no calls of it";
}

}  // namespace
}  // namespace longwire::shim
