// When a whole state is worth what it costs: where the program's work stands still. That work has
// made no progress for some time says little at first, since kernels may run long; more once a
// state was answered soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace longwire::shim {

// Streams with unfinished work, and how far each has come.
using Progress = std::set<std::pair<uint64_t, uint64_t>>;

class Standstill {
 public:
  using Clock = std::chrono::steady_clock;
  struct Terms {
    Clock::duration first, least, most;  // pauses
    bool moves = false;                  // work that moves soon after a state is an answer to it
  };

  explicit Standstill(const Terms& terms) : terms_(terms), pause_(terms.first) {}

  // How far work has come now.
  void Observe(const Progress& progress, Clock::time_point now);
  // Work has stood still for the pause, and the last state is as long ago.
  bool IsDue(Clock::time_point now) const;
  // Some stream has not moved for that time, whatever the others do.
  bool AnyStandsFor(Clock::duration time, Clock::time_point now) const;
  // Nothing has run for a moment.
  bool IsOver(Clock::time_point now) const;
  // A state was passed on, or tried, and took that long: the next one waits as long at least. One
  // that brought nothing doubles the pause.
  void NoteState(Clock::time_point now, Clock::duration took = {});
  // It was answered, or brought something. Nothing if none is unanswered.
  void NoteAnswer();
  Clock::duration pause() const { return pause_; }

 private:
  const Terms terms_;
  Clock::duration pause_;
  Progress progress_;
  std::map<std::pair<uint64_t, uint64_t>, Clock::time_point> stand_since_;  // of each
  Clock::duration took_{};
  Clock::time_point since_{}, tried_{};
  bool unanswered_ = false;
};

}  // namespace longwire::shim
