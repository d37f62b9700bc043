// The state of the process, which every entry point checks first: may it make calls at all? Nothing
// here takes a lock or uses the network.
#pragma once

#include <atomic>

namespace longwire::shim {

enum class ProcessState : int {
  kNotInitialized = 0,
  kReady = 1,
  kForked = 2,    // a child of an initialised process: the session is the parent's
  kTornDown = 3,  // exit handlers are running
};

inline std::atomic<int> process_state{static_cast<int>(ProcessState::kNotInitialized)};

inline ProcessState CurrentProcessState() {
  return static_cast<ProcessState>(process_state.load(std::memory_order_acquire));
}

// Not 0 while some calls are illegal: during host functions, during captures in strict modes, and
// after the session's end.
inline std::atomic<int> special_calls{0};
// True if calls are printed or counted (LONGWIRE_TRACE).
inline std::atomic<bool> calls_are_traced{false};

}  // namespace longwire::shim
