#include "link/transport/timer_slack.h"

#include <absl/base/config.h>
#include <absl/base/internal/sysinfo.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpc/grpc.h>
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/start_thread.h"
#include "wire/switches.h"

namespace longwire::transport {
namespace {

constexpr std::chrono::nanoseconds kSlack = std::chrono::milliseconds(250);
constexpr std::chrono::nanoseconds kOrdinarySlack = std::chrono::microseconds(50);  // Linux's own

// Abseil measures the processor's frequency when a second thread first waits for a mutex, by sleeps
// of some milliseconds while it has the mutex's queue. With slack they were half a second, for all
// who came by: a connection stood still. So a thread without slack is the first.
void MeasureFrequency() { absl::base_internal::NominalCPUFrequency(); }

}  // namespace

// gRPC's timer threads wake up to thirty times a second with nothing to do: once a second for each
// of twice as many lists of timers as there are cores. Threads have the slack of the one that
// starts them, so those that gRPC starts for other work have it, too.
void StartGrpcWithSlack() {
  std::thread measures;
  if (!base::StartThread(&measures, MeasureFrequency)) MeasureFrequency();
  if (!wire::IsSwitchedOff("timer-slack")) prctl(PR_SET_TIMERSLACK, kSlack.count());
  grpc_init();                  // never shut down: the threads stay
  prctl(PR_SET_TIMERSLACK, 0);  // back to what it was
  if (measures.joinable()) measures.join();
}

}  // namespace longwire::transport

// Abseil's mutexes sleep for 10 us before they try again; what the thread has by then waits with
// it. So sleeps have the ordinary slack. Abseil declares this function weak, for programs to
// replace.
extern "C" [[gnu::visibility("default")]] void ABSL_INTERNAL_C_SYMBOL(AbslInternalSleepFor)(
    absl::Duration duration) {
  const int slack = prctl(PR_GET_TIMERSLACK);
  const bool stretched = slack > longwire::transport::kOrdinarySlack.count();
  if (stretched) prctl(PR_SET_TIMERSLACK, longwire::transport::kOrdinarySlack.count());
  timespec left = absl::ToTimespec(duration);
  while (left.tv_sec >= 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  if (stretched) prctl(PR_SET_TIMERSLACK, slack);
}
