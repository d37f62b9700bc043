#include "wire/spinning.h"

#include <sched.h>

#include <algorithm>

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

}  // namespace

SpinPrediction::SpinPrediction(int cores)
    : predicts_(cores > 1 && !IsSwitchedOff("predicted-spins")),
      longest_look_(cores < kManyCores ? kLongestLookOfFew : kLongestLook),
      spin_(cores < 2 ? nanoseconds(0) : kShortLook) {}

void SpinPrediction::Waited(nanoseconds took) {
  if (!predicts_) return;
  if (took > longest_look_) {
    if (++pauses_ > 1) longest_ = {};
  } else {
    pauses_ = 0;
    longest_ = std::max(took, longest_ - longest_ / 8);  // it is forgotten by and by
  }
  spin_ = std::clamp<nanoseconds>(2 * longest_, kShortLook, longest_look_);
}

int AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace longwire::wire
