// Changes of executables in the order of the log. A change runs on a helper, when what was queued
// before it has been issued; a launch behind it in the log is issued after it. So a client may send
// both without waiting for the change's answer (wire::kUnawaited).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <set>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/call_queue.h"

namespace longwire::worker {

class ExecChanges {
 public:
  // The call was read from the log, if it is such a change (lwGraphSetKernel, lwGraphSetChild).
  void Read(const QueuedCall& call);
  // It has run, or will not. True if a launch may have waited for it.
  bool Ended(const QueuedCall& call, CUresult result);

  // Of a launch at `position`: kNotYet while a change before it is under way. The driver's error,
  // if one was refused that the program takes for made: the launch would use what was there
  // before. That lasts until the node is changed again, or Forget.
  CUresult BeforeLaunch(uint64_t exec, uint64_t position);
  // The executable was updated as a whole, or destroyed.
  void Forget(uint64_t exec);

 private:
  base::Mutex mutex_{base::ranks::kExecChanges};
  // By executable.
  std::map<uint64_t, std::set<uint64_t>> under_way_ LONGWIRE_GUARDED_BY(mutex_);  // positions
  std::map<uint64_t, std::map<uint64_t, CUresult>> refused_ LONGWIRE_GUARDED_BY(mutex_);  // by node
};

}  // namespace longwire::worker
