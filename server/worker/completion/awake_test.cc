// A worker whose session stays awake between messages: whether its log thread sleeps is seen on the
// ring, and what is spun is counted in the page.
#include <gtest/gtest.h>

#include <thread>

#include "server/worker/testing/test_session.h"
#include "wire/rings/ring_control.h"

namespace longwire::worker::testing {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kForLong = 3'600'000'000'000;  // nanoseconds

bool LogThreadSleeps(TestSession& test) { return test.up->control().consumer_sleeping.load() != 0; }

// A launch, and its completion.
void Request(TestSession& test, uint64_t stream) {
  const uint64_t position = test.Launch(stream, 1);
  test.ExpectProgress(stream, position);
}

TEST(AwakeWorker, SleepsBetweenMessagesAsEver) {
  auto page = gates::GatePage::Create(1);
  TestSession test(page);
  Request(test, test.CreateStream(7));
  test.Until([&] { return LogThreadSleeps(test); }, "the log thread's sleep");
  EXPECT_EQ(page->awake_spent(), 0u);
}

TEST(AwakeWorker, DoesNotSleepWithinTheTimeAndDoesAfterwards) {
  auto page = gates::GatePage::Create(1);
  page->awake() = kForLong;
  TestSession test(page);
  Request(test, test.CreateStream(7));
  test.Until([&] { return page->awake_spent() > 0; }, "a thread that stays awake");
  const auto end = std::chrono::steady_clock::now() + milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
    EXPECT_FALSE(LogThreadSleeps(test));
    std::this_thread::sleep_for(milliseconds(1));
  }
  page->awake() = 1'000'000;  // which is over
  test.Until([&] { return LogThreadSleeps(test); }, "the log thread's sleep");
  // The completion thread sleeps, too: nothing is spent any more.
  uint64_t before = 0;
  test.Until(
      [&] {
        before = page->awake_spent();
        std::this_thread::sleep_for(milliseconds(50));
        return page->awake_spent() == before;
      },
      "the completion thread's sleep");
}

TEST(AwakeWorker, ServesRequestsWhileItIsAwake) {
  auto page = gates::GatePage::Create(1);
  page->awake() = kForLong;
  TestSession test(page);
  const uint64_t stream = test.CreateStream(7);
  for (int i = 0; i < 50; ++i) Request(test, stream);
}

}  // namespace
}  // namespace longwire::worker::testing
