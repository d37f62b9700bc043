// How long something took since the daemon began: to open sessions, and the pauses of those that
// move. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace longwire::daemon {

class OpeningTimes {
 public:
  // Seconds. A warm worker opens within a few hundredths; a cold one on a device with a driver
  // takes seconds; one that waits for its turn (admission:) up to three more.
  static constexpr std::array kBounds = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                         0.5,   1.0,  2.5,   5.0,  10.0, 30.0};
  struct Figures {
    std::array<uint64_t, kBounds.size() + 1> counts{};  // up to each bound, and beyond all
    double seconds = 0;                                 // of all together
  };

  void Add(std::chrono::nanoseconds time);
  Figures Get() const;

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<uint64_t> nanoseconds_{0};
};

}  // namespace longwire::daemon
