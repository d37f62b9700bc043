// Whom to ask to let go of memory, and how long to wait for them. No sockets, no clock: the
// keeper's loop tells what happened and when, and sends what is decided here. The policy says which
// memory; here is who may be asked at all:
//   - nobody while it has work (it says so), and not again for a moment;
//   - nobody that came back a moment ago: at least as long as its way back took it stays;
//   - who does not answer in time holds others up and is ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "server/keeper/swap_policy.h"
#include "server/keeper/swap_protocol.h"
#include "server/keeper/swap_times.h"

namespace longwire::keeper {

class Swaps {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  struct Ask {
    uint64_t worker = 0;
    SwapOut packet;
  };
  // What came of wanting memory.
  enum class Hope {
    kComing,  // somebody was asked, or is leaving
    kLater,   // those who could help are at work, or have just come back
    kNone,
  };

  Swaps(SwapPolicy& policy, const SwapTimes& times) : policy_(policy), times_(times) {}

  void Remove(uint64_t worker) { workers_.erase(worker); }
  // What is missing and who could help. Call Advance again when something changed, now and then.
  struct Want {
    uint64_t bytes = 0;
    uint64_t room = 0;     // bytes of the host's memory
    uint64_t leaving = 0;  // bytes that are on their way out already
    bool partly = false;   // less than all of it helps, too: there will be more room then
    std::vector<Region> movable;
    std::vector<Region> later{};  // of who is on its way back, or waits for something itself
    uint64_t later_room = 0;      // bytes of the host's memory once they are back
  };
  Hope Advance(const Want& want, Time now, std::vector<Ask>* asks);
  // The chunks that the worker let go of; none if it did not, or was not asked.
  std::vector<uint64_t> Answered(uint64_t worker, const SwapLeft& answer, Time now);
  // It is back; that began at `since`.
  void CameBack(uint64_t worker, Time since, Time now);
  // Its answers cannot be heard now: its time begins anew.
  void Extend(uint64_t worker, Time now);
  // Those that were asked and did not answer in time, once.
  std::vector<uint64_t> Late(Time now);
  bool IsAsked(uint64_t worker) const;
  const SwapTimes& times() const { return times_; }

 private:
  struct Worker {
    uint64_t request = 0;  // that is not answered, 0: none
    uint64_t bytes = 0;    // of it
    std::vector<uint64_t> chunks;
    Time asked{};
    Time not_before{};  // it is left alone until then
    bool never = false;
    bool late = false;
  };
  bool MayBeAsked(uint64_t worker, Time now) const;
  bool IsHopeless(uint64_t worker) const;  // its memory is never to be had
  std::vector<Region> Victims(const Want& want, std::span<const Region> movable);

  SwapPolicy& policy_;
  const SwapTimes times_;
  std::map<uint64_t, Worker> workers_;  // those that were asked or came back
  uint64_t next_request_ = 1;
};

}  // namespace longwire::keeper
