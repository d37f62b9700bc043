#include "wire/spinning.h"

#include <sched.h>

#include <algorithm>

#include "wire/switches.h"

namespace longwire::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr microseconds kShortLook{50};
constexpr microseconds kLongestLook{1000};
// With few cores those who look take turns with those who work.
constexpr microseconds kLongestLookOfFew{300};
constexpr int kManyCores = 4;

// Around the end of a long wait: what a sleep is late by, and what such waits differ by.
nanoseconds Around(nanoseconds wait) {
  return std::clamp<nanoseconds>(wait / 8, kShortLook, microseconds(250));
}

}  // namespace

SpinPrediction::SpinPrediction(int cores)
    : predicts_(cores > 1 && !IsSwitchedOff("predicted-spins")),
      looks_again_(predicts_ && cores >= kManyCores),
      longest_look_(cores < kManyCores ? kLongestLookOfFew : kLongestLook),
      spin_(cores < 2 ? nanoseconds(0) : kShortLook) {}

void SpinPrediction::Waited(nanoseconds took) {
  if (!predicts_) return;
  if (took > longest_look_) {
    if (++pauses_ > 1) longest_ = {};
    bool alike = looks_again_ && std::chrono::abs(took - pause_) <= Around(took);
    usual_ = alike ? took : nanoseconds(0);
    pause_ = took;
  } else {
    pauses_ = 0;
    longest_ = std::max(took, longest_ - longest_ / 8);  // it is forgotten by and by
  }
  spin_ = std::clamp<nanoseconds>(2 * longest_, kShortLook, longest_look_);
}

SpinPrediction::Part SpinPrediction::Next(nanoseconds so_far) const {
  constexpr auto kUntilItEnds = nanoseconds::max();
  nanoseconds around = Around(usual_);
  nanoseconds look = std::max<nanoseconds>(spin_ - so_far, nanoseconds(0));
  if (usual_.count() == 0 || so_far > usual_ + around) return {look, kUntilItEnds};
  nanoseconds again = usual_ - around;
  if (so_far + look < again) return {look, again - so_far - look};
  return {usual_ + around - so_far, kUntilItEnds};
}

int AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace longwire::wire
