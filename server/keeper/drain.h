// Whom to ask for memory that sessions keep free, and how long to wait for them. No sockets, no
// clock: the keeper's loop tells what happened and when, and sends what is decided here.
//
// The rules: the session that was least recently active is asked first, the next one when it
// answered with too little or has thought about it for kNextAfter; each is asked once for a lease.
// Who does not answer within kPatience is silent: nobody waits for it, or asks it again, until
// something is heard of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/keeper/protocol.h"

namespace longwire::keeper {

struct DrainCounts {
  uint64_t asked = 0;     // requests to sessions
  uint64_t silent = 0;    // of them, without an answer in time
  uint64_t drained = 0;   // bytes that came back for somebody's lease
  uint64_t returned = 0;  // bytes that came back because nobody had used them for long
};

class Drain {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::chrono::milliseconds kNextAfter{25};
  // A figure that is younger is not asked for again.
  static constexpr std::chrono::milliseconds kFigureAge{20};
  // A quiet session is asked what it does not use less and less often: after 2^n times as long.
  static constexpr uint32_t kMaxDoublings = 5;

  struct Ask {
    uint64_t worker = 0;
    Reclaim packet;
  };
  // Who was asked for one lease.
  struct Round {
    std::set<uint64_t> asked;
    Time last{};  // when one was asked last
  };

  void Add(uint64_t worker, Time now) { workers_[worker].active = now; }
  void Remove(uint64_t worker) { workers_.erase(worker); }
  // It leased or gave back, so it is alive.
  void Active(uint64_t worker, Time now);

  // A lease lacks `bytes`, which any of `candidates` may have free. False: nobody is left to ask or
  // to wait for. Call again when something changed, or at next().
  bool Advance(Round& round, std::span<const uint64_t> candidates, uint64_t bytes, Time now,
               std::vector<Ask>* asks);
  // Asks for what the candidates keep free. False: all figures are there.
  bool Figures(std::span<const uint64_t> candidates, Time asked, Time now, std::vector<Ask>* asks);
  uint64_t IdleOf(uint64_t worker) const;  // as it said last; 0: it is silent
  // Sessions of `candidates` that shall give back what they have not used for `idle_after`.
  // Says when to call it again though nothing changes.
  Time AskUnused(std::span<const uint64_t> candidates, uint64_t keep,
                 std::chrono::nanoseconds idle_after, Time now, std::vector<Ask>* asks);

  // Less may be kept, or for less time, than when they were asked: they are asked again soon.
  void ForgetUnusedAsks();

  void Answered(uint64_t worker, const Reclaimed& answer, Time now);

  const DrainCounts& counts() const { return counts_; }

 private:
  struct Worker {
    Time active{};
    Time asked{};              // since when an answer is waited for
    Time answered{};           // the last time
    uint64_t request = 0;      // of the answer that is waited for, 0: none
    bool for_lease = false;    // what it was asked for
    bool silent = false;       // asked, and not heard of since
    uint64_t idle = 0;         // bytes, as it said last
    uint32_t unused_asks = 0;  // since it was active
    Time unused_asked{};
  };
  // Waits for its answer, for which there is still time.
  bool Waits(Worker& worker, Time now);
  Reclaim Begin(Worker& worker, Time now, bool for_lease);

  std::map<uint64_t, Worker> workers_;
  uint64_t next_request_ = 1;
  DrainCounts counts_;
};

}  // namespace longwire::keeper
