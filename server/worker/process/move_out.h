// The old worker's side of a move (server/protocol/moving.h): says whether the session can move,
// holds it at a border between calls, writes what it is, and ends, or goes on as if nothing had
// been.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/protocol/moving.h"
#include "server/worker/process/move_pieces.h"
#include "server/worker/process/snapshot.h"
#include "server/worker/support/journal.h"
#include "wire/open.h"
#include "wire/socket.h"

namespace longwire::worker {

class WorkerSession;

// The OpenReply without what may differ from worker to worker: which processes and which device of
// the kind serve it, and what was leased.
std::string Comparable(wire::OpenReply reply);

class MoveOut {
 public:
  // `request` and `reply`: with which the session was opened.
  MoveOut(WorkerSession& session, wire::OpenRequest request, const wire::OpenReply& reply);

  // Answers over `packets` until it is closed: then the session goes on. One move at a time.
  // `tells_ahead`: that it knows MoveAhead.
  void Serve(wire::Descriptor packets, wire::Descriptor stream, bool tells_ahead);

 private:
  // Why it cannot move; empty if it can.
  std::string Unmovable();
  std::string UnmovableAtOnce();
  std::string UnmovableNow();
  bool ToBorder();
  bool AtBorder(const std::function<bool()>& does);
  // True once nothing of what was read is under way.
  bool IsQuiet();
  bool WaitUntilQuiet(std::chrono::milliseconds patience);
  // What it answers.
  moving::MoveAnswer Handle(const wire::Message& said, bool* known);
  moving::MoveAnswer Hold(uint32_t patience);
  moving::MoveAnswer WriteAhead();
  moving::MoveAnswer WriteAll();
  // What the session is between two calls: its memory, and the calls that were not written yet.
  struct Moment {
    CarriedMemory memory;
    std::vector<Journal::Entry> calls;
  };
  bool TakeWhole(Moment* moment);
  bool Captures();
  void GoOn();
  CarriedState StateOf(CarriedMemory memory) const;
  bool AddPlaces(CarriedState* state, std::string* problem);
  bool WriteCalls(const std::vector<Journal::Entry>& calls);
  void TakePieces();

  WorkerSession& session_;
  wire::OpenRequest request_;
  const std::string opening_;
  bool held_ = false;
  // Of this move.
  wire::Descriptor stream_;
  std::optional<SnapshotWriter> to_;
  uint64_t rounds_ = 0;                 // that were written ahead
  uint64_t next_entry_ = 0;             // the position from which on calls were not written
  std::unique_ptr<MovePieces> pieces_;  // since the first hold
  bool shared_ = false;                 // they are the new worker's
};

}  // namespace longwire::worker
