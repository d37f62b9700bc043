// The old worker's side of a move (server/protocol/moving.h): says whether the session can move,
// holds it at a border between calls, writes what it is, and ends, or goes on as if nothing had
// been.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/worker/process/move_pieces.h"
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
  void Serve(wire::Descriptor packets, wire::Descriptor stream);

 private:
  // Why it cannot move; empty if it can.
  std::string Unmovable();
  // True once nothing of what was read is under way.
  bool IsQuiet();
  bool WaitUntilQuiet(std::chrono::milliseconds patience);
  // A sentence if it failed.
  std::string Write(int stream);
  bool WriteState(class SnapshotWriter& to, std::string* problem);
  bool WriteJournal(class SnapshotWriter& to);
  void TakePieces(int stream);
  bool Answer(int socket, int32_t code, const std::string& sentence);

  WorkerSession& session_;
  wire::OpenRequest request_;
  const std::string opening_;
  bool held_ = false;
  std::unique_ptr<MovePieces> pieces_;  // since the first hold
  bool shared_ = false;                 // they are the new worker's
};

}  // namespace longwire::worker
