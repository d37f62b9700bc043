// Ends sessions whose right ends while they run: their identity or tenant was removed, their
// certificate expired, was revoked or lost its authority, or they reached a limit of their tenant
// in time. Each hears the reason. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/access/revocations.h"
#include "server/daemon/sessions/session_table.h"
#include "wire/descriptors.h"

namespace longwire::daemon {

class Removals {
 public:
  // Says why a certificate chain (PEM) proves nothing any more; empty when it does.
  using Distrust = std::function<std::string(const std::string& chain)>;

  Removals(SessionTable& table, Revocations& revocations, Distrust distrust);
  ~Removals() { Stop(); }

  // Watches sessions and the file of revoked certificates on a thread of its own.
  void Start();
  void Stop();

  // Looks at every session at once, under the configuration in force; what has lost its right is
  // ended before this returns.
  void CheckAll();
  // The same for one session that has just been opened: what was removed while it opened. The
  // reason, with which its client is refused; empty when it may go on.
  std::string CheckNew(const ServerSession& session);

  // Ends the tenant's or the identity's sessions, also those that are being opened. How many it
  // ended; nullopt when the name is neither of a running session nor in the configuration.
  std::optional<size_t> Evict(const std::string& name);

 private:
  struct Activity {
    uint64_t bytes = 0;
    Clock::time_point since;
  };
  struct Times {
    Clock::time_point look = Clock::time_point::max();  // at the session's limits in time
    std::time_t expiry = 0;                             // of the first certificate; 0: of none
  };

  std::string WhyRemoved(const ServerSession& session, const config::LiveConfig::Snapshot& config);
  void Loop();
  void Watch();
  // Ends what has reached a limit in time, and says when to look again.
  Times CheckTimes();
  std::string WhyOver(ServerSession& session, const config::Tenant& tenant, bool busy,
                      Times* times);
  void SetAlarm(std::time_t expiry);

  SessionTable& table_;
  Revocations& revocations_;
  const Distrust distrust_;
  wire::Descriptor wake_;     // readable: look again
  wire::Descriptor alarm_;    // a certificate has expired, or the host's clock was set
  wire::Descriptor changes_;  // of the folder of revoked certificates
  std::string watched_;       // that folder; used by the thread
  std::map<uint64_t, Activity> activities_;  // by session; used by the thread
  std::atomic<bool> stopping_{false};
  std::thread thread_;

  base::Mutex mutex_{base::ranks::kRemovals};
  // When a name was evicted.
  std::map<std::string, Clock::time_point> evicted_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
