// Waiting for descriptors. PollSet is for a loop over several of them: each pass asks about an
// entry by what Add returned for it, never by its place in an array. A negative timeout waits for
// ever.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <vector>

namespace longwire::base {

// A timeout as poll takes it.
inline int PollTimeout(std::chrono::milliseconds timeout) {
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(timeout.count(), -1, INT_MAX));
}

class PollSet {
 public:
  class Entry {
   public:
    constexpr Entry() = default;  // of no set; never ready

   private:
    friend class PollSet;
    constexpr explicit Entry(size_t index) : index_(index) {}
    size_t index_ = static_cast<size_t>(-1);
  };

  // Ends the entries. Keeps the memory: a loop that fills one set again does not allocate.
  void Clear() { entries_.clear(); }

  // A descriptor below zero is never ready. POLLHUP and POLLERR are always waited for.
  Entry Add(int descriptor, short events = POLLIN) {
    entries_.push_back({descriptor, events, 0});
    return Entry(entries_.size() - 1);
  }

  // Returns how many entries are ready, 0 when the time is over, -1 with errno (EINTR: a signal).
  int Wait(std::chrono::milliseconds timeout) {
    return poll(entries_.data(), entries_.size(), PollTimeout(timeout));
  }

  // Whether one of these events came in the last Wait that did not fail; without `events`, whether
  // anything did.
  bool Ready(Entry entry, short events = static_cast<short>(~0)) const {
    return entry.index_ < entries_.size() && (entries_[entry.index_].revents & events) != 0;
  }

 private:
  std::vector<pollfd> entries_;
};

// Waits for one descriptor, through signals. Returns the events that came (POLLHUP, POLLERR and
// POLLNVAL besides those asked for), 0 when the time is over. A failure of poll is a POLLERR.
inline short PollOne(int descriptor, short events, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  pollfd entry{descriptor, events, 0};
  const bool waits = timeout.count() > 0;
  const auto deadline = waits ? Clock::now() + timeout : Clock::time_point();
  while (true) {
    int ready = poll(&entry, 1, PollTimeout(timeout));
    if (ready >= 0) return ready == 0 ? short{0} : entry.revents;
    if (errno != EINTR) return POLLERR;
    if (!waits) continue;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    timeout = std::max(left, std::chrono::milliseconds(0));
  }
}

}  // namespace longwire::base
