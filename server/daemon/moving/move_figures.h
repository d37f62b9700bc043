// What has become of the moves of this daemon's time, for metrics: of sessions that went to another
// device or server, into a file or out of one. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/daemon/moving/rounds.h"
#include "server/daemon/sessions/opening_times.h"

namespace longwire::daemon {

// kRebalance: to another device, so that a large session gets in (make_room.cc).
enum class MoveKind { kDevice, kServer, kCheckpoint, kRestore, kRebalance };
inline constexpr std::array kMoveKinds = {"device", "server", "checkpoint", "restore", "rebalance"};

// Before anything had stopped: the session cannot move; there is no place for it, or the server of
// the place refuses; its program did not pause between calls.
enum class MoveRefusal { kSession, kPlace, kBusy };
inline constexpr std::array kMoveRefusals = {"session", "place", "busy"};

class MoveFigures {
 public:
  struct OfKind {
    uint64_t done = 0;
    uint64_t gone_back = 0;  // stood still, and went on where it was
    uint64_t lost = 0;       // ended between its workers
    uint64_t bytes = 0;      // of device memory, of those that are done
    CallsAgain calls;        // likewise
    std::array<uint64_t, kMoveRefusals.size()> refused{};
    OpeningTimes::Figures pauses;  // of those that are done
  };
  using Figures = std::array<OfKind, kMoveKinds.size()>;

  void Done(MoveKind kind, std::chrono::nanoseconds pause, uint64_t bytes, CallsAgain calls);
  // Nobody knows how long its pause was.
  void DoneLate(MoveKind kind) { Of(kind).done.fetch_add(1); }
  void Refused(MoveKind kind, MoveRefusal why);
  void GoneBack(MoveKind kind);
  void Lost(MoveKind kind);
  Figures Get() const;

 private:
  struct Counters {
    std::atomic<uint64_t> done{0}, gone_back{0}, lost{0}, bytes{0};
    std::atomic<uint64_t> calls_before{0}, calls_still{0};
    std::array<std::atomic<uint64_t>, kMoveRefusals.size()> refused{};
    OpeningTimes pauses;
  };
  Counters& Of(MoveKind kind) { return counters_[static_cast<size_t>(kind)]; }

  std::array<Counters, kMoveKinds.size()> counters_;
};

// One move, which is counted when this goes: by how far it has come, if it was not done.
class CountedMove {
 public:
  CountedMove(MoveFigures& figures, MoveKind kind) : figures_(figures), kind_(kind) {}
  ~CountedMove();
  CountedMove(const CountedMove&) = delete;
  CountedMove& operator=(const CountedMove&) = delete;

  // Where it goes wrong if nothing else is said.
  enum class At { kNothing, kSession, kPlace, kHold, kStandsStill, kSwitch };
  void Is(At at) { at_ = at; }
  void Done(std::chrono::nanoseconds pause, uint64_t bytes, CallsAgain calls);

 private:
  MoveFigures& figures_;
  const MoveKind kind_;
  At at_ = At::kNothing;
};

}  // namespace longwire::daemon
