#include "wire/spinning.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "wire/guards.h"

namespace longwire::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr microseconds kShortLook{50};
constexpr microseconds kLongestLook{1000};
// With few cores those who look take turns with those who work.
constexpr microseconds kLongestLookOfFew{300};
constexpr int kManyCores = 4;
// A step's wait is remembered through the many short ones of the next step.
constexpr microseconds kRemembered{5000};

}  // namespace

SpinPrediction::SpinPrediction(int cores)
    : predicts_(cores > 1 && !IsSwitchedOff("predicted-spins")),
      longest_look_(cores < kManyCores ? kLongestLookOfFew : kLongestLook),
      spin_(cores < 2 ? nanoseconds(0) : kShortLook) {}

void SpinPrediction::Waited(nanoseconds took) {
  if (!predicts_) return;
  if (took > longest_look_) {
    if (++pauses_ > 1) longest_ = longest_before_ = {};
  } else {
    pauses_ = 0;
    longest_ = std::max(took, longest_);
  }
  waited_ += took;
  nanoseconds longest = std::max(longest_, longest_before_);
  spin_ = std::clamp<nanoseconds>(2 * longest, kShortLook, longest_look_);
  if (waited_ < kRemembered) return;
  longest_before_ = std::exchange(longest_, nanoseconds(0));
  waited_ = {};
}

int AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace longwire::wire
