// How long a test program goes on: some seconds, or until its standard input ends, for a test that
// has to do something meanwhile, however long that takes on a busy machine.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

class TimeToRun {
 public:
  // Seconds as a decimal number, or "stdin".
  explicit TimeToRun(const char* argument)
      : until_told_(std::strcmp(argument, "stdin") == 0), seconds_(std::atof(argument)) {}

  void Begin() { end_ = Clock::now() + std::chrono::duration<double>(seconds_); }

  bool GoesOn() const {
    pollfd input{0, POLLIN, 0};
    return until_told_ ? poll(&input, 1, 0) == 0 : Clock::now() < end_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const bool until_told_;
  const double seconds_;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};
