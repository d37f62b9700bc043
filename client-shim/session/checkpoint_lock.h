// The lock of cuCheckpointProcessLock: while it is held, calls wait before they begin. Those that
// the client answers itself (kind LOCAL) go on.
#pragma once

#include <cuda.h>

#include <chrono>

namespace longwire::shim {

// Of the whole process. Anybody may ask at any time.
CUprocessState CheckpointState();

// For one who changes the state, from one call's begin to its end: of two at once one gets it.
class CheckpointChange {
 public:
  CheckpointChange();
  ~CheckpointChange();
  CheckpointChange(const CheckpointChange&) = delete;
  CheckpointChange& operator=(const CheckpointChange&) = delete;
  bool is_alone() const { return alone_; }
  // While the state is RUNNING: calls that begin from now on wait, or do not any more.
  static void HoldCalls(bool hold);
  static void Set(CUprocessState state);

 private:
  const bool alone_;
};

// For calls that are about to begin.
void AwaitCheckpointUnlock();

}  // namespace longwire::shim
