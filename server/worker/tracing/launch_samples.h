// How long launches take to begin, measured of one in many: the device writes down when it gets to
// that launch. The others cost a comparison for each run of launches.
#pragma once

#include <cstdint>

#include "server/worker/tracing/spans.h"

namespace longwire::worker {

class Gates;

// Log thread only.
class LaunchSamples {
 public:
  // One launch of this number is measured, the last of them. An event costs as much as a third of a
  // launch, so that should be a thousandth.
  static constexpr uint64_t kEvery = 256;

  LaunchSamples(Spans& spans, Gates& gates) : spans_(spans), gates_(gates) {}

  // Launches were given to the driver.
  void Count(uint64_t launches) { count_ += launches; }
  bool due() const { return count_ >= next_ && position_ == kNone; }

  // The launch at this position, which was read just now, is the one that is measured.
  void Choose(uint64_t position) {
    position_ = position;
    read_ = Spans::Now();
  }
  bool IsChosen(uint64_t position) const { return position == position_; }
  // It is given to the driver next; then it was, or it was not taken and comes again. The stream's
  // issue_mutex is held and its context is current.
  void Starts(Stream& stream);
  void Issued(Stream& stream);
  void ComesAgain(const Stream& stream);
  // It is not given to the driver at all.
  void Dropped() { position_ = kNone; }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  static uint64_t First();  // kNone: no launch is measured

  Spans& spans_;
  Gates& gates_;
  uint64_t count_ = 0;
  uint64_t next_ = First();
  uint64_t position_ = kNone;  // of the launch that is chosen
  uint64_t read_ = 0;          // when it was read
  Spans::Place place_;         // before it
};

}  // namespace longwire::worker
