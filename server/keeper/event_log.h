// The latest events of a device's memory, for `longwire memory`: a bounded queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "server/protocol/keeper.h"

namespace longwire::keeper {

class EventLog {
 public:
  void Add(MemoryEventKind kind, uint64_t worker, uint64_t bytes) {
    auto now = std::chrono::system_clock::now().time_since_epoch();
    auto time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    events_.push_back(
        {++last_, static_cast<uint64_t>(time), static_cast<uint32_t>(kind), worker, bytes});
    if (events_.size() > kEventsKept) events_.pop_front();
  }

  // The events after `number`, at most the latest `most`.
  std::vector<MemoryEvent> After(uint64_t number, size_t most) const {
    std::vector<MemoryEvent> after;
    for (const MemoryEvent& event : events_) {
      if (event.number > number && event.number + most > last_) after.push_back(event);
    }
    return after;
  }

  uint64_t last() const { return last_; }

 private:
  std::deque<MemoryEvent> events_;
  uint64_t last_ = 0;
};

}  // namespace longwire::keeper
