// Since when the placer knows of programs that wait and of claims with a time limit, on its own
// clock: hosts' clocks are not compared. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "server/pool/directory.h"

namespace longwire::pool {

class Ages {
 public:
  using Clock = std::chrono::steady_clock;

  // A program whose front died keeps its age when it asks another one within `grace`.
  explicit Ages(std::chrono::seconds grace);

  // First in each pass: learns who is there, forgets who has been placed or is away too long.
  void Look(const Directory& directory, Clock::time_point now);
  // Of a waiter that Look has seen: its age and for how long it has waited.
  void Fill(const Waiter& waiter, scheduler::pool::Wish* wish) const;
  // When it was seen first, in seconds of the calendar: for people alone. 0: Look has not seen it.
  uint64_t SinceOf(const Waiter& waiter) const;
  // What runs at the host, for whom, and when its devices are free by their sessions' limits at the
  // latest.
  void Fill(const Directory& directory, scheduler::pool::HostState* host) const;
  void Clear();
  // Of the clock that these are of.
  static uint64_t Seconds(Clock::time_point time);

 private:
  struct Known {
    uint64_t age = 0;  // revision at which it asked first
    std::string ticket_hash;
    Clock::time_point since, seen;
  };
  const std::chrono::seconds grace_;
  // By what the calendar is ahead of Clock; read once, so that what is said stays the same.
  const uint64_t calendar_;
  Clock::time_point now_{};
  std::map<std::string, Known> waiters_;             // by number
  std::map<std::string, Clock::time_point> claims_;  // by number, those with a limit
};

}  // namespace longwire::pool
