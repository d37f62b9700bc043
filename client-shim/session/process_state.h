// What every entry point looks at first: whether this process may make calls at all. Nothing here
// takes a lock or touches the network.
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

// More than 0 while something is going on that makes single calls illegal: host functions, captures
// in strict modes, the session's end.
inline std::atomic<int> special_calls{0};
// Calls are printed or counted (LONGWIRE_TRACE).
inline std::atomic<bool> calls_are_traced{false};

}  // namespace longwire::shim
