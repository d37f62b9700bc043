// Decides which sessions stay awake between their messages (docs/decisions/0060): those of tenants
// with `awake`, as far as the cores of scheduler.awake_cores suffice. Where they do not, tenants
// and their sessions take turns, by how long each has had cores; a session that does nothing
// waits behind those that work. Thread-safe. Its thread sleeps where there is enough for all.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/gates/gate_page.h"

namespace longwire::daemon {

// For the daemon's own thread of a session: its worker could write what stands in the page.
struct AwakeGrant {
  std::atomic<uint64_t> wanted{0};   // nanoseconds, for the link, which has cores of its own
  std::atomic<uint64_t> allowed{0};  // nanoseconds
  std::atomic<uint64_t> spent{0};    // nanoseconds of processor time
};

struct AwakeFigures {
  std::chrono::nanoseconds wanted{0};
  bool granted = false;
  std::chrono::nanoseconds spent{0};  // by the session's threads here, as its worker says, too
};

class AwakeCores {
 public:
  // `turn`: the length of a turn where cores are short.
  explicit AwakeCores(uint32_t cores,
                      std::chrono::milliseconds turn = std::chrono::milliseconds(500));
  ~AwakeCores();

  struct Wish {
    std::string tenant;
    std::chrono::nanoseconds awake{0};  // of the tenant
    bool relayed = false;               // the daemon has a thread of it, too
  };
  // The session is there until Leave. The daemon's thread obeys what is returned.
  std::shared_ptr<AwakeGrant> Enter(uint64_t id, const Wish& wish,
                                    std::shared_ptr<gates::GatePage> page);
  void Leave(uint64_t id);
  // Both take effect at once.
  void SetCores(uint32_t cores);
  void SetTenant(const std::string& tenant, std::chrono::nanoseconds awake);
  // Tenants whose sessions are of the best-effort class now: those sleep, whatever the tenant
  // wants. True if that changes what a session gets.
  bool SetBestEffort(std::set<std::string> tenants);

  // Gives the cores anew. Its thread does so by itself.
  void Share();

  uint32_t cores();
  uint32_t cores_in_use();
  std::map<uint64_t, AwakeFigures> Sessions();
  // By tenant, of all its sessions since the start.
  std::map<std::string, std::chrono::nanoseconds> Spent();

 private:
  struct Seat {
    Wish wish;
    std::shared_ptr<gates::GatePage> page;
    std::shared_ptr<AwakeGrant> grant = std::make_shared<AwakeGrant>();
    bool granted = false;
    bool active = true;        // has done something since the last turn
    bool admitted = false;     // was active in the turn before
    uint64_t calls = 0;        // at the end of the last turn
    uint64_t turns = 0;        // for which it had cores while it was active
    uint64_t inherited = 0;    // spent before this daemon
    bool best_effort = false;  // now
    uint32_t threads() const { return wish.relayed ? 3 : 2; }
    std::chrono::nanoseconds awake() const {
      return best_effort ? std::chrono::nanoseconds(0) : wish.awake;
    }
    uint64_t spent() const;
  };
  struct Account {
    uint64_t turns = 0;  // core turns of active sessions
    bool active = false;
    uint64_t ended = 0;  // spent by sessions that have ended
  };

  void Loop();
  void ShareLocked() LONGWIRE_REQUIRES(mutex_);
  void LookForActivity() LONGWIRE_REQUIRES(mutex_);
  // Those who begin or come back start beside those who have had least, not before them.
  void Admit() LONGWIRE_REQUIRES(mutex_);
  static void Set(Seat& seat, bool granted);

  const bool switched_off_;  // LONGWIRE_DISABLE=awake
  const std::chrono::milliseconds turn_;
  base::Mutex mutex_{base::ranks::kAwakeCores};
  base::CondVar changed_;
  uint32_t cores_ LONGWIRE_GUARDED_BY(mutex_);
  uint32_t in_use_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool contended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::set<std::string> best_effort_ LONGWIRE_GUARDED_BY(mutex_);  // tenants
  std::map<uint64_t, Seat> seats_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<std::string, Account> accounts_ LONGWIRE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace longwire::daemon
