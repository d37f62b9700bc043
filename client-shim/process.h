// The one session of this process and the state that every entry point looks at first. Nothing here
// takes a lock or touches the network before cuInit.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>

#include "client-shim/session.h"

namespace longwire::shim {

enum class ProcessState : int {
  kNotInitialized = 0,
  kReady = 1,
  kForked = 2,    // a child of an initialised process: the session is the parent's
  kTornDown = 3,  // exit handlers are running
};

extern std::atomic<int> process_state;

inline ProcessState CurrentProcessState() {
  return static_cast<ProcessState>(process_state.load(std::memory_order_acquire));
}

// What cuInit does: opens the session once. CUDA_ERROR_NO_DEVICE, silently, when no server is
// configured, and with one sentence on stderr when none answers in time.
CUresult InitializeProcess(unsigned flags);

// Makes a session of parts that are there already (tests within one process).
CUresult InitializeProcessWith(SessionParts parts);

// Only after a successful cuInit.
Session& TheSession();

}  // namespace longwire::shim
