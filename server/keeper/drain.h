// Chooses the sessions to ask for memory that they keep free, and how long to wait for them. No
// sockets, no clock: the keeper's loop passes events and times in, and sends the requests.
//
// The rules: the least recently active session is asked first, the next one when its answer was not
// enough or has not come for kNextAfter; each is asked once for a lease. A session that does not
// answer within kPatience is silent: it is neither waited for nor asked again until it sends
// something.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/protocol/keeper.h"

namespace longwire::keeper {

struct DrainCounts {
  uint64_t asked = 0;     // requests to sessions
  uint64_t silent = 0;    // of them, without an answer in time
  uint64_t drained = 0;   // bytes returned for a lease
  uint64_t returned = 0;  // bytes returned because they were unused for long
};

class Drain {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::chrono::milliseconds kNextAfter{25};
  // A newer figure is not requested again.
  static constexpr std::chrono::milliseconds kFigureAge{20};
  // An inactive session is asked for unused memory less and less often: after 2^n times as long.
  static constexpr uint32_t kMaxDoublings = 5;

  struct Ask {
    uint64_t worker = 0;
    Reclaim packet;
  };
  // The sessions that were asked for one lease.
  struct Round {
    std::set<uint64_t> asked;
    Time last{};  // the last request
  };

  void Add(uint64_t worker, Time now) { workers_[worker].active = now; }
  void Remove(uint64_t worker) { workers_.erase(worker); }
  // The session leased or returned memory, so it is alive.
  void Active(uint64_t worker, Time now);

  // A lease lacks `bytes`, which any of `candidates` may have free. False: no session is left to
  // ask or to wait for. Call again after every change, and now and then.
  bool Advance(Round& round, std::span<const uint64_t> candidates, uint64_t bytes, Time now,
               std::vector<Ask>* asks);
  // Asks how much the candidates keep free. False: all figures are known.
  bool Figures(std::span<const uint64_t> candidates, Time asked, Time now, std::vector<Ask>* asks);
  // By its last answer; 0 if it is silent, or did not give back what it claimed to have free.
  uint64_t IdleOf(uint64_t worker) const;
  // Until when that counts without asking again.
  Time FigureCountsUntil(uint64_t worker) const;
  // Asks those of `candidates` that have more than `keep` unused for `idle_after` to return it.
  // Returns when to call it again at the latest.
  Time AskUnused(std::span<const uint64_t> candidates, uint64_t keep,
                 std::chrono::nanoseconds idle_after, Time now, std::vector<Ask>* asks);

  // Limits have become stricter: sessions are asked again soon.
  void ForgetUnusedAsks();

  // answer.bytes: what was indeed returned.
  void Answered(uint64_t worker, const Reclaimed& answer, Time now);

  const DrainCounts& counts() const { return counts_; }

 private:
  struct Worker {
    Time active{};
    Time asked{};              // when the pending request was sent
    Time answered{};           // the last answer
    uint64_t request = 0;      // the pending request, 0: none
    bool for_lease = false;    // purpose of the request
    bool watched = false;      // a change will be reported
    bool silent = false;       // asked, and no packet since
    uint64_t wanted = 0;       // bytes that a lease lacked at that request
    bool doubtful = false;     // it gave back less than that, and claimed to have some free
    uint64_t idle = 0;         // bytes, by its last answer
    uint32_t unused_asks = 0;  // since it was active
    Time unused_asked{};
  };
  // True while an answer is pending and may still come in time.
  bool Waits(Worker& worker, Time now);
  Reclaim Begin(Worker& worker, Time now, bool for_lease);

  std::map<uint64_t, Worker> workers_;
  uint64_t next_request_ = 1;
  DrainCounts counts_;
};

}  // namespace longwire::keeper
