// The order of locks, checked while a program runs. Builds with LONGWIRE_LOCK_CHECKS (a CMake
// option, on in the presets dev, asan and tsan) end a process that takes ranked mutexes against
// their order or waits with one of them held; other builds contain nothing of it.
#pragma once

#include "longwire/lock_checks.h"  // made by CMake

namespace longwire::base {

// A thread takes a mutex only if its rank is higher than that of every ranked mutex it holds. All
// ranks are in lock_ranks.h.
struct LockRank {
  int order;
  const char* name;  // of the mutex
};

#if LONGWIRE_LOCK_CHECKS

// Adds a mutex to the list of those that this thread holds, and removes it. PushLock is called
// before the mutex is taken, so that a wrong order is reported even when it leads to a deadlock.
void PushLock(const void* mutex, const LockRank& rank);
void PopLock(const void* mutex);
// Ends the process unless this thread holds the mutex.
void AssertLockHeld(const void* mutex, const LockRank& rank);

// Call it before anything that may wait for another process, a device or the network.
void AssertNoRankedLockHeld();
// The same for a wait in which `mutex` is released.
void AssertNoRankedLockHeldBut(const void* mutex);

#else

inline void AssertNoRankedLockHeld() {}

#endif

}  // namespace longwire::base
