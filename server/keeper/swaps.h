// Chooses the sessions to swap out, and how long to wait for them. No sockets, no clock: the
// keeper's loop passes events and times in, and sends the requests. The policy chooses the memory;
// this class decides which sessions may be asked:
//   - a session that answers that it is busy is left alone for a moment;
//   - a session that was swapped in stays at least as long as the swap-in took;
//   - a session that does not answer in time blocks others and is ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "server/keeper/swap_policy.h"
#include "server/keeper/swap_times.h"
#include "server/protocol/swap.h"

namespace longwire::keeper {

class Swaps {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  struct Ask {
    uint64_t worker = 0;
    SwapOut packet;
  };
  // The prospect of a request for memory.
  enum class Hope {
    kComing,  // a session was asked, or is being swapped out
    kLater,   // the sessions in question are busy, or were just swapped in
    kNone,
  };

  Swaps(SwapPolicy& policy, const SwapTimes& times) : policy_(policy), times_(times) {}

  void Remove(uint64_t worker) { workers_.erase(worker); }
  // What is missing, and the candidates. Call Advance again after every change, and now and then.
  struct Want {
    uint64_t bytes = 0;
    uint64_t room = 0;     // free bytes of host memory
    uint64_t leaving = 0;  // bytes being swapped out already
    bool partly = false;   // a part is useful, too: more room will follow
    std::vector<Region> movable;
    std::vector<Region> later{};  // of sessions being swapped in, or waiting themselves
    uint64_t later_room = 0;      // free bytes of host memory once they are swapped in
  };
  Hope Advance(const Want& want, Time now, std::vector<Ask>* asks);
  // The chunks that the worker has unmapped; empty if it refused or was not asked.
  std::vector<uint64_t> Answered(uint64_t worker, const SwapLeft& answer, Time now);
  // The worker was swapped in, which began at `since`. `stay`: at least, if that is longer.
  void CameBack(uint64_t worker, Time since, Time now, Clock::duration stay = {});
  // The keeper cannot read the worker's answers now: its time limit starts again.
  void Extend(uint64_t worker, Time now);
  // Workers that did not answer in time; each is reported once.
  std::vector<uint64_t> Late(Time now);
  bool IsAsked(uint64_t worker) const;
  const SwapTimes& times() const { return times_; }

 private:
  struct Worker {
    uint64_t request = 0;  // pending, 0: none
    uint64_t bytes = 0;    // of the request
    std::vector<uint64_t> chunks;
    Time asked{};
    Time not_before{};  // not asked until then
    bool never = false;
    bool late = false;
  };
  bool MayBeAsked(uint64_t worker, Time now) const;
  bool IsHopeless(uint64_t worker) const;  // can never be swapped out
  std::vector<Region> Victims(const Want& want, std::span<const Region> movable);

  SwapPolicy& policy_;
  const SwapTimes times_;
  std::map<uint64_t, Worker> workers_;  // those that were asked or swapped in
  uint64_t next_request_ = 1;
};

}  // namespace longwire::keeper
