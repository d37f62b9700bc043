#include "wire/rings/spinning.h"

#include <sched.h>

#include <algorithm>

#include "wire/switches.h"

namespace longwire::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr microseconds kShortSpin{50};
constexpr microseconds kLongestSpin{1000};
// With few cores, spinning threads take turns with threads that work.
constexpr microseconds kLongestSpinOfFew{300};
constexpr int kManyCores = 4;

// The margin around the expected end of a long wait: how late a sleep may end, and by how much such
// waits differ.
nanoseconds Around(nanoseconds wait) {
  return std::clamp<nanoseconds>(wait / 8, kShortSpin, microseconds(250));
}

}  // namespace

SpinPrediction::SpinPrediction(int cores)
    : predicts_(cores > 1 && !IsSwitchedOff("predicted-spins")),
      spins_at_end_(predicts_ && cores >= kManyCores),
      longest_spin_(cores < kManyCores ? kLongestSpinOfFew : kLongestSpin),
      spin_(cores < 2 ? nanoseconds(0) : kShortSpin) {}

void SpinPrediction::Waited(nanoseconds took) {
  if (!predicts_) return;
  if (took > longest_spin_) {
    if (++pauses_ > 1) longest_ = {};
    bool alike = spins_at_end_ && std::chrono::abs(took - pause_) <= Around(took);
    usual_ = alike ? took : nanoseconds(0);
    pause_ = took;
  } else {
    pauses_ = 0;
    longest_ = std::max(took, longest_ - longest_ / 8);  // decays
  }
  spin_ = std::clamp<nanoseconds>(2 * longest_, kShortSpin, longest_spin_);
}

SpinPrediction::Part SpinPrediction::Next(nanoseconds so_far) const {
  constexpr auto kUntilItEnds = nanoseconds::max();
  nanoseconds around = Around(usual_);
  nanoseconds spin = std::max<nanoseconds>(spin_ - so_far, nanoseconds(0));
  if (usual_.count() == 0 || so_far > usual_ + around) return {spin, kUntilItEnds};
  nanoseconds again = usual_ - around;
  if (so_far + spin < again) return {spin, again - so_far - spin};
  return {usual_ + around - so_far, kUntilItEnds};
}

int AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace longwire::wire
