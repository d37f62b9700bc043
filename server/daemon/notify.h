// Notifies the service manager that started the daemon (Type=notify, WatchdogSec= and so on).
// Without a service manager it does nothing.
#pragma once

#include <signal.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/accept_loop.h"
#include "server/warden/service_manager.h"

namespace longwire::daemon {

class Notifier {
 public:
  Notifier(const service::Manager& manager, AcceptLoop& accept)
      : manager_(manager), accept_(accept) {}

  // Thread-safe, as the next two are.
  void Ready(std::string_view status);
  void Reloading();
  void Stopping();

  // Waits for one of `signals`, which are blocked in every thread. Meanwhile it notifies the
  // manager's watchdog as long as the daemon responds.
  int WaitForSignal(const sigset_t& signals);

 private:
  void Beat(std::chrono::microseconds patience);

  const service::Manager& manager_;
  AcceptLoop& accept_;
  base::Mutex mutex_{base::ranks::kNotifier};
  std::string status_ LONGWIRE_GUARDED_BY(mutex_);  // the last one that was sent
};

// True if the accept loop handles a new event within `patience`.
bool LoopAnswers(AcceptLoop& loop, std::chrono::microseconds patience);

}  // namespace longwire::daemon
