// Calls that are made ahead (ClientSession::CallAhead): the program goes on before they are
// answered.
#include "client-shim/session/session.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

void ClientSession::BeginAhead() {
  const uint32_t thread = ThisThread().number;
  base::MutexLock lock(state_mutex_);
  while (ahead_ != 0 && ahead_by_ != thread && ended() == CUDA_SUCCESS) {
    lock.Unlock();
    AwaitAhead();
    lock.Lock();
  }
  ahead_by_ = thread;
  ++ahead_;
}

void ClientSession::EndAhead() {
  base::MutexLock lock(state_mutex_);
  if (--ahead_ == 0) state_changed_.NotifyAll();
}

void ClientSession::AwaitAhead() {
  counts_.round_trips.fetch_add(1, std::memory_order_relaxed);
  // When the session ends nobody answers any more, and all that follows fails.
  (void)WaitUntil([&] { return ahead_ == 0; });
}

}  // namespace longwire::shim
