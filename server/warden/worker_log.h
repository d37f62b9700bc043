// What a worker writes to its standard error, as lines of the warden's log. The worker has the end
// of a pipe only: it cannot write more lines than its limit, hold up the warden, or write what a
// terminal obeys. A line that does not name the worker is marked as its.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/line_limit.h"
#include "wire/descriptors.h"

namespace longwire::warden {

class WorkerLog {
 public:
  using Clock = base::LineLimit::Clock;

  // The worker's end of a new pipe, which does not wait when the pipe is full; invalid without
  // descriptors left.
  wire::Descriptor Open();
  int descriptor() const { return pipe_.get(); }

  // Lines a second, and a burst: ten times as many, or a report.
  void SetLimit(uint32_t lines_per_second);

  // Whether there is anything to wait for: not while the worker is beyond its limit.
  bool Listens(Clock::time_point now) const { return pipe_.valid() && now >= paused_until_; }
  bool IsPaused(Clock::time_point now) const { return pipe_.valid() && now < paused_until_; }
  // Writes what has come, as far as the limit allows.
  void Read(pid_t worker, Clock::time_point now);
  // The worker has ended: writes the rest, and how many lines were left out. `session`: 0 if none.
  void Finish(pid_t worker, uint64_t session, Clock::time_point now);

 private:
  void Take(std::string_view bytes, pid_t worker, Clock::time_point now);
  void Line(std::string_view line, pid_t worker, Clock::time_point now);

  wire::Descriptor pipe_;
  std::string begun_;  // a line that is not complete yet
  base::LineLimit limit_{kUsual, kReport, Clock::now()};
  Clock::time_point paused_until_{};
  uint64_t left_out_ = 0;

  // A report of a crash or a sanitizer has up to 150 lines.
  static constexpr double kReport = 150;
  static constexpr double kUsual = 10;
};

}  // namespace longwire::warden
