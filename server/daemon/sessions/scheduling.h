// Runs the scheduler: reports the workers' activity to the core (scheduler/core.h) and writes its
// decisions to the sessions' gate pages. One thread; it sleeps while there is no session and wakes
// twice a second while no session shares its device. Thread-safe.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/program.h"
#include "scheduler/accounting.h"
#include "scheduler/core.h"
#include "server/gates/gate_page.h"
#include "wire/socket.h"

namespace longwire::daemon {

struct SchedulingOptions {
  bool enabled = true;  // false: all gates stay open
  std::string policy = "strict_priority";
  scheduler::Options times;
  bool short_time_slice = true;  // of best-effort workers beside latency-critical ones
};

// One session on one device, for people.
struct SeatFigures {
  uint64_t session = 0;
  uint32_t device = 0;
  bool closed = false;   // its gate
  bool limited = false;  // takes turns, or has a budget
  bool busy = false;
  bool answers = true;                   // its worker responds: it was not stopped
  std::chrono::nanoseconds gpu_time{0};  // its share where sessions ran at once
  uint64_t calls = 0;                    // executed on the device
  uint64_t held = 0;                     // times that a gate or budget delayed work
  uint32_t time_slice_groups = 0;        // channel groups with a short time slice
  uint32_t time_slice = 0;               // requested, microseconds; 0: the driver's default
};

struct ShareFigures {
  double due = 0;  // 0 to 1
  double had = 0;  // 0 to 1, of the GPU time that was used there; 0 if none was
};

class Scheduling {
 public:
  // `terms_changed` is called, by a thread of its own that holds no lock, after Terms has changed.
  explicit Scheduling(const SchedulingOptions& options,
                      std::function<void()> terms_changed = nullptr);
  ~Scheduling();
  // Nothing is scheduled or told any more.
  void Stop();

  // The gate page for a new session's worker; nullptr when there are no descriptors left.
  std::shared_ptr<gates::GatePage> Open(const scheduler::SessionInfo& session);
  // The same for a session that another daemon opened, with the page that its worker obeys.
  void Inherit(const scheduler::SessionInfo& session, std::shared_ptr<gates::GatePage> page);
  void Close(uint64_t session);
  // Two sessions of one tenant that may wait for each other's kernels: their gates open and close
  // together from now on.
  void Join(uint64_t first, uint64_t second);
  // Takes effect at once, for running sessions too.
  void Change(const SchedulingOptions& options);
  // From now on the policy is asked, for running sessions too; null: what is built in alone.
  void Use(std::shared_ptr<policy::Program> program);
  // The options in force.
  SchedulingOptions options();
  // Takes effect at once, for the tenant's running sessions too.
  void ChangeTenant(const std::string& tenant, scheduler::PriorityClass priority_class,
                    uint32_t weight);

  // Class and weight of each tenant that has sessions, as they are in force: as configured, or as
  // a policy says. Nobody else knows them.
  std::map<std::string, scheduler::TenantTerms> Terms();
  std::vector<SeatFigures> Seats();
  scheduler::Counters counters();
  // Utilization of each device in the last two seconds, 0 to 1, by device number. Placement,
  // status, metrics and programs all use this figure.
  std::map<uint32_t, double> BusyDevices();
  // How often each call was made, by call number, in all sessions since the start.
  std::vector<uint64_t> CallCounts();
  // Sessions that are of the best-effort class, also by a policy's word.
  std::set<uint64_t> BestEffort();
  // By tenant, of all its sessions since the start.
  std::map<std::string, std::chrono::nanoseconds> GpuTimes();
  // How long sessions' calls took, by tenant, since the daemon began.
  std::map<std::string, gates::AllLatencies> Latencies();
  // For each tenant with best-effort sessions: the share of their devices that is due to it by the
  // weights of the tenants there, and the share that it had in the last minute.
  std::map<std::string, ShareFigures> Shares();

 private:
  struct Seat {
    uint64_t session = 0;
    std::string tenant;
    bool best_effort = true;
    std::shared_ptr<gates::GatePage> page;
    uint32_t index = 0;      // of the device in the session
    uint64_t seen_time = 0;  // the page's GPU time when it was last accounted
    scheduler::Time gpu_time{0};
    scheduler::Time core_from{0};  // part of gpu_time before the core knew the session
    bool limited = false;
    scheduler::Time idle_since{0};   // of a latency-critical session; 0: it is busy
    scheduler::Time longest_gap{0};  // recent, between its launches
    gates::DeviceGate& gate() const { return page->device(index); }
  };
  struct Device {
    std::vector<Seat> seats;
    uint64_t accounted_at = 0;
    scheduler::Time used{0};  // by all sessions
    // Time and value of `used`. The oldest sample is as old as the period that BusyDevices covers.
    std::deque<std::pair<uint64_t, scheduler::Time>> samples;
    std::map<std::string, scheduler::SlidingSum> recent;  // by tenant, for Shares
  };
  // A session's worker, and whether it responds.
  struct Worker {
    scheduler::SessionInfo info;
    std::shared_ptr<gates::GatePage> page;
    uint64_t unseen_since = 0;  // 0: it has seen every change of its gates
    bool answers = true;
  };

  void Enter(const scheduler::SessionInfo& session, const std::shared_ptr<gates::GatePage>& page)
      LONGWIRE_REQUIRES(mutex_);
  static scheduler::Time Now();
  void Loop();
  void Hear(std::span<const epoll_event> events) LONGWIRE_REQUIRES(mutex_);
  std::optional<std::chrono::nanoseconds> Timeout();  // of the wait for events; none: no limit
  // A name of the gang that opens and closes with this seat.
  std::string GangOf(const Seat& seat) const LONGWIRE_REQUIRES(mutex_);
  void Poll(uint64_t session) LONGWIRE_REQUIRES(mutex_);
  void PollAll() LONGWIRE_REQUIRES(mutex_);
  void Deliver(scheduler::Event event) LONGWIRE_REQUIRES(mutex_);
  void Apply(const scheduler::Decision& decision) LONGWIRE_REQUIRES(mutex_);
  void Report(uint32_t number, Seat& seat) LONGWIRE_REQUIRES(mutex_);
  void ObserveGap(uint32_t number, Seat& seat, scheduler::Activity activity)
      LONGWIRE_REQUIRES(mutex_);
  void Account(Device& device) LONGWIRE_REQUIRES(mutex_);
  void CheckWorkers() LONGWIRE_REQUIRES(mutex_);
  bool Answers(uint64_t session) const LONGWIRE_REQUIRES(mutex_);
  bool IsShared() const LONGWIRE_REQUIRES(mutex_);
  void SetTimeSlice(Seat& seat) LONGWIRE_REQUIRES(mutex_);
  void OpenAllGates() LONGWIRE_REQUIRES(mutex_);
  std::unique_ptr<scheduler::Policy> MakePolicy() const LONGWIRE_REQUIRES(mutex_);
  void TakeProgram(std::shared_ptr<policy::Program> program) LONGWIRE_REQUIRES(mutex_);
  void TakePolicy() LONGWIRE_REQUIRES(mutex_);
  void TakeTerms() LONGWIRE_REQUIRES(mutex_);
  void DropEndedProgram() LONGWIRE_REQUIRES(mutex_);
  static void Sample(Device& device);
  void WatchSharedDevices() LONGWIRE_REQUIRES(mutex_);
  Seat* FindSeat(uint64_t session, uint32_t device) LONGWIRE_REQUIRES(mutex_);

  const std::function<void()> terms_changed_;
  wire::Descriptor epoll_;
  wire::Descriptor wake_;
  std::thread thread_;

  base::Mutex mutex_{base::ranks::kScheduling};
  SchedulingOptions options_ LONGWIRE_GUARDED_BY(mutex_);
  std::shared_ptr<policy::Program> program_ LONGWIRE_GUARDED_BY(mutex_);  // beside it; may be null
  std::unique_ptr<scheduler::Policy> policy_ LONGWIRE_GUARDED_BY(mutex_);
  scheduler::Core core_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint32_t, Device> devices_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Worker> workers_ LONGWIRE_GUARDED_BY(mutex_);                // by session
  std::map<std::string, scheduler::Time> gpu_times_ LONGWIRE_GUARDED_BY(mutex_);  // by tenant
  std::map<std::string, scheduler::TenantTerms> terms_ LONGWIRE_GUARDED_BY(mutex_);
  bool terms_told_ LONGWIRE_GUARDED_BY(mutex_) = true;
  // Events that arose while the core handles another.
  std::deque<scheduler::Event> undelivered_ LONGWIRE_GUARDED_BY(mutex_);
  bool delivering_ LONGWIRE_GUARDED_BY(mutex_) = false;
  scheduler::Time next_poll_ LONGWIRE_GUARDED_BY(mutex_){0};
  std::vector<uint64_t> ended_calls_ LONGWIRE_GUARDED_BY(mutex_);  // of sessions that have ended
  // By tenant, of sessions that have ended.
  std::map<std::string, gates::AllLatencies> ended_latencies_ LONGWIRE_GUARDED_BY(mutex_);
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::daemon
