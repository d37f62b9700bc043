// The core's own state: sessions sit on devices, belong to a tenant and move in gangs. Plain data;
// registry.h keeps it, turns.h moves it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/accounting.h"
#include "scheduler/event.h"
#include "scheduler/policy.h"

namespace longwire::scheduler {

struct Device;
struct Gang;
struct ScheduledSession;

struct Tenant {
  uint64_t id = 0;
  TenantName name;
  uint64_t number = 0;  // see advice.h
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
  std::map<SessionId, ScheduledSession*> sessions;
  std::map<std::string, Gang*> named_gangs;
  GpuAccount* account = nullptr;
  double wide_time = 0;  // virtual time in the order of wide gangs, see turns.h

  bool best_effort() const { return priority_class == PriorityClass::kBestEffort; }
};

// A session's place on one of its devices.
struct Seat {
  ScheduledSession* session = nullptr;
  Device* device = nullptr;
  Activity activity = Activity::kIdle;
  Time gpu_time{0};
  Time reported_at{0};  // or when it opened
  Time ahead{0};        // charged since, before any report
  Time gap{0};
  std::optional<Decision> told;  // the last decision
  bool marked = false;           // its decision may have changed
  bool unfinished = false;       // it runs what it ran when its gang's turn was over
  uint32_t calls = 0;            // kernels that were let go after a turn was over
  bool let_go = false;           // the last of them may still go, or runs
};

struct ScheduledSession {
  SessionId id = 0;
  Tenant* tenant = nullptr;
  Gang* gang = nullptr;
  std::vector<Seat> seats;  // never resized after the session opened
};

// Where a gang stands:
//
//            work            its turn           over            drained, or too late
//   resting ──────▶ waiting ──────────▶ turn ─────────▶ draining ──────▶ waiting or resting
//
// and free, from anywhere, while none of its devices has turns. A wide gang's turn may end between
// kernels that wait for each other, one on each device. Those that run can only drain if the others
// begin. So when nothing has changed for a while and some of what ran at the turn's end still runs,
// the gang's other seats may give one kernel each to their devices, and again, until all of that is
// finished. One that was let go too early, because a report came late, may wait for others itself:
// once in a turn, after a turn's length, it counts as such work.
enum class Phase { kFree, kResting, kWaiting, kTurn, kDraining };

// A wide gang's place among all wide gangs: virtual time and arrival when it lined up.
using Ticket = std::pair<double, uint64_t>;

struct Turn {
  std::vector<Device*> devices;  // held until it has drained
  bool open = false;             // its gate
  Time opened_at{0};
  Time since{0};     // up to when `left` and `patience` are spent
  Time left{0};      // may the gate stay open, if others wait
  Time patience{0};  // may latency-critical work keep the gate closed
  Time idle_since = kForever;
  Time drain_by{0};
  Time closed_at{0};       // when it was over
  Time changed_at{0};      // since then, whether something ran on some device, or one was let go
  bool completes = false;  // something was let go
  bool again = false;      // what was let go has itself become unfinished work
  Time charged{0};
  bool gave_up = false;  // it ended because the gang made nothing of it
};

// Sessions of one tenant that open and close together.
struct Gang {
  uint64_t id = 0;
  Tenant* tenant = nullptr;
  std::vector<ScheduledSession*> sessions;
  std::vector<std::string> names;
  Time idle_credit{0};  // how long it may yet keep a device waiting in its gaps
  uint32_t queued = 0;  // seats by activity
  uint32_t running = 0;

  Phase phase = Phase::kFree;
  Time charged_from{0};             // what it used before is free
  std::vector<Device*> waiting_at;  // several: it is wide
  uint64_t arrival = 0;             // grows with each lining up
  Time waiting_since{0};
  Ticket ticket;           // if wide
  Device* home = nullptr;  // where its use is charged; null if wide or free
  Turn turn;
  Time wake_at = kForever;  // its timer

  bool has_work() const { return queued + running > 0; }
  bool open() const { return phase == Phase::kFree || (phase == Phase::kTurn && turn.open); }
  bool has_unfinished() const;
};

template <class Work>
void ForEachSeat(const Gang& gang, Work work) {
  for (ScheduledSession* session : gang.sessions) {
    for (Seat& seat : session->seats) work(seat);
  }
}

inline bool Gang::has_unfinished() const {
  bool found = false;
  ForEachSeat(*this, [&](const Seat& seat) { found |= seat.unfinished; });
  return found;
}

}  // namespace longwire::scheduler
