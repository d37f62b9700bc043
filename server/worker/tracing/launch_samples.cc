#include "server/worker/tracing/launch_samples.h"

#include <algorithm>

#include "server/worker/completion/gates.h"
#include "wire/switches.h"

namespace longwire::worker {

uint64_t LaunchSamples::First() {
  return wire::IsSwitchedOff("launch-samples") ? kNone : kEvery - 1;
}

void LaunchSamples::Starts(Stream& stream) { place_ = spans_.Mark(stream); }

void LaunchSamples::ComesAgain(const Stream& stream) {
  if (place_.clock != nullptr) spans_.Unmark(stream, place_);
  place_ = {};
}

void LaunchSamples::Issued(Stream& stream) {
  position_ = kNone;
  next_ = count_ + kEvery;
  if (place_.clock == nullptr) return;
  const uint64_t read = read_;
  gates_.Count(gates::Latency::kQueueing, place_.issued - std::min(place_.issued, read));
  spans_.WhenReached(stream, place_, [read, &gates = gates_](uint64_t started) {
    gates.Count(gates::Latency::kLaunchToStart, started - std::min(started, read));
  });
  place_ = {};
}

}  // namespace longwire::worker
