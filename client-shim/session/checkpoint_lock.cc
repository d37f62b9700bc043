#include "client-shim/session/checkpoint_lock.h"

#include <atomic>
#include <cstdlib>

#include "base/mutex.h"
#include "client-shim/session/process_state.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct CheckpointLock {
  base::Mutex mutex;  // held by who waits for another call
  base::CondVar changed;
  std::atomic<bool> holds{false};
  std::atomic<bool> changing{false};
  std::atomic<CUprocessState> state{CU_PROCESS_STATE_RUNNING};
};

CheckpointLock& TheLock() {
  static NeverDestroyed<CheckpointLock> lock;
  return *lock;
}

// Else the program's own destructors, which make calls, would wait for ever.
void LetGoAtExit() { CheckpointChange::HoldCalls(false); }

}  // namespace

CUprocessState CheckpointState() { return TheLock().state.load(); }

CheckpointChange::CheckpointChange() : alone_(!TheLock().changing.exchange(true)) {}

CheckpointChange::~CheckpointChange() {
  if (alone_) TheLock().changing.store(false);
}

void CheckpointChange::HoldCalls(bool hold) {
  static const int at_exit = atexit(LetGoAtExit);  // behind what the program has registered by now
  (void)at_exit;
  CheckpointLock& all = TheLock();
  base::MutexLock lock(all.mutex);
  if (all.holds.exchange(hold) == hold) return;
  special_calls.fetch_add(hold ? 1 : -1);
  all.changed.NotifyAll();
}

void CheckpointChange::Set(CUprocessState state) { TheLock().state.store(state); }

void AwaitCheckpointUnlock() {
  CheckpointLock& all = TheLock();
  if (!all.holds.load()) return;
  base::MutexLock lock(all.mutex);
  while (all.holds.load()) all.changed.Wait(lock);
}

}  // namespace longwire::shim
