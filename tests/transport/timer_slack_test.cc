// Who has slack for timers, as gRPC's threads do, has none where it sleeps for a moment with a lock
// in its hand.
#include "link/transport/timer_slack.h"

#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

namespace {

constexpr int kSlack = 250'000'000, kOrdinarySlack = 50'000;  // ns

std::atomic<int> sleeps{0}, most_slack{0};

void Sleep() { absl::SleepFor(absl::Microseconds(10)); }

// The second one in the queue of a mutex.
void WaitForMutex() {
  absl::Mutex mutex;
  bool first_waits = false, over = false;
  std::thread first([&] {
    absl::MutexLock lock(&mutex);
    first_waits = true;
    mutex.Await(absl::Condition(&over));
  });
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&first_waits));
  bool never = false;
  mutex.AwaitWithTimeout(absl::Condition(&never), absl::Microseconds(10));
  over = true;
  mutex.Unlock();
  first.join();
  mutex.Lock();
}

// Both only once a process: what is measured at the first wait is known at the second.
TEST(TimerSlack, NobodySleepsWithSlackBeforeAMutex) {
  longwire::transport::StartGrpcWithSlack();
  std::thread([] {
    prctl(PR_SET_TIMERSLACK, kSlack);
    WaitForMutex();
    Sleep();
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK), kSlack);
  }).join();
  EXPECT_GT(sleeps, 0);
  EXPECT_LE(most_slack, kOrdinarySlack);
}

}  // namespace

// Instead of the C library's: all of this process's sleeps come by.
extern "C" [[gnu::visibility("default")]] int nanosleep(const timespec* wanted, timespec* left) {
  ++sleeps;
  most_slack = std::max(most_slack.load(), prctl(PR_GET_TIMERSLACK));
  errno = clock_nanosleep(CLOCK_REALTIME, 0, wanted, left);
  return errno == 0 ? 0 : -1;
}
