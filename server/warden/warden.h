// The warden's loop: starts keepers and workers, keeps their descriptors (rings, control sockets,
// pidfds) across restarts of the daemon, and reports deaths. One thread; no peer can block it.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/poll_set.h"
#include "server/ledger/loan_table.h"
#include "server/ledger/quota.h"
#include "server/protocol/keeper.h"
#include "server/protocol/kept_session.h"
#include "server/protocol/log_terms.h"
#include "server/protocol/policies.h"
#include "server/protocol/warden.h"
#include "server/warden/compile_cache.h"
#include "server/warden/own_program.h"
#include "server/warden/spawn.h"
#include "server/warden/starter_client.h"
#include "server/warden/worker_log.h"
#include "wire/socket.h"

namespace longwire::warden {

// The walls between workers (walls.cc).
struct WallOptions {
  bool separate = false;        // false: workers are started without them
  std::string starter_socket;   // of the service manager's starter; empty: the warden starts one
  std::string starter_program;  // path
  uint32_t first_uid = 1'900'000'000;         // of workers (server/protocol/starter.h)
  std::string system_calls = "enforce";       // as the configuration has it
  uint64_t host_memory = uint64_t{64} << 30;  // bytes of a worker, where it has a cgroup
  int processes = 4096;                       // threads of a worker
  std::string addresses = "random";           // of the driver's memory in a worker
  std::string cgroups;  // the folder of their control groups, or own; empty: they get none
};

struct Options {
  std::string socket;                      // path
  std::string driver;                      // in the keeper's notation
  std::vector<int32_t> devices;            // served; empty: all that the driver shows
  int warm_workers = 1;                    // kept ready on each device
  std::map<int32_t, int> warm_workers_of;  // overrides for single devices
  bool on_demand = false;                  // Run ends when the warden is not needed for idle_end
  std::chrono::seconds idle_end{60};
  std::chrono::seconds orphan_time{kOrphanSeconds};  // until a daemon says another
  std::string compile_cache;                         // folder; empty: no cache
  std::string worker_program;                        // paths
  std::string keeper_program;
  OwnProgram own_program;
  WallOptions walls;
};

class Warden {
 public:
  explicit Warden(Options options);

  // OpenDevices opens the devices through their keepers and returns the first device's CUresult;
  // others that fail are tried again. Listen then opens the socket: `given` by a service manager,
  // or one of our own. Root and the owner of the socket's file may connect.
  int OpenDevices(std::string* sentence);
  bool Listen(std::string* sentence, wire::Descriptor given = {});
  // Serves. RunOnce is one pass that waits at most `timeout`; false: the warden is not needed, or
  // has no session and its program was upgraded: its successor has the next one.
  void Run();
  bool RunOnce(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    wire::Descriptor socket;
    uint32_t version = 0;           // in use; 0: nothing received yet
    base::PollSet::Entry readable;  // of this pass
  };
  struct Keeper {
    Process process;
    wire::Descriptor control;
    uint32_t version = 0;                    // in use; 0: nothing received yet
    keeper::KeeperState state;               // the last one received
    std::deque<keeper::MemoryEvent> events;  // the latest, with sessions for workers
    uint64_t last_event = 0;                 // numbering of the keeper's process
    uint64_t events_told = 0;                // numbering of the warden
    Clock::time_point started{};
    std::unique_ptr<keeper::LoanTable> loans;  // what is lent; the device's keepers share it
    bool ready = false;                        // has opened the device
    Clock::time_point ended{};                 // the last one that was ready
    Clock::time_point not_before{};            // when the next one is started
    std::chrono::milliseconds pause{0};        // until then
    uint64_t successions = 0;
    bool succeeds = false;               // is still to get workers
    bool announced = false;              // the first packet of that was sent
    std::deque<uint64_t> attaching;      // workers that it is still to get
    base::PollSet::Entry readable, end;  // of this pass: its socket, its process
  };
  struct Worker {
    Process process;
    wire::Descriptor control, up, down;
    uint64_t number = 0;
    bool walled = false;   // a child of the starter
    uint64_t session = 0;  // 0: warm
    int connection = -1;   // owner, -1: none
    Clock::time_point orphaned{};
    std::string record;                  // for the next daemon, with these
    std::vector<wire::Descriptor> kept;  // descriptors
    Clock::time_point started{};
    std::vector<int32_t> devices;
    std::vector<wire::Descriptor> keeper_ends;  // of its sockets, for the keepers' successors
    uint32_t tenant = 0;                        // in the ledger
    uint64_t promised = 0;                      // bytes of each device
    std::set<int32_t> unpromised;               // devices that have not said so yet
    uint64_t start = 0;                         // the request that waits for that
    bool warm = false;                          // what it says then
    std::vector<std::string> environment;
    std::string why;  // reason why it is killed
    WorkerLog log;
    base::PollSet::Entry end, lines;  // of this pass: its process, its log
  };
  // A session whose worker ended while there was no daemon.
  struct Gone {
    uint64_t session = 0;
    std::string record, how;
    Clock::time_point since{};
  };
  // When the next worker is started ahead on a device.
  struct Warm {
    Clock::time_point after{};
    Clock::time_point started{};  // the last one
    std::chrono::milliseconds pause{0};
  };

  // True if a worker's log is read again soon without an event.
  bool FillPollSet();
  void HandleEvents();
  void Accept();
  void Serve(int connection);
  // Handle the first packet of a daemon, of a keeper. True if it was no Hello and has to be handled
  // as an ordinary packet. Otherwise connection or keeper may have been closed.
  bool Greet(int connection, std::span<const std::byte> packet);
  bool GreetKeeper(Keeper& keeper, std::span<const std::byte> packet);
  void Disconnect(int connection);
  void Do(int connection, const StartWorker& request);
  void Do(int connection, const ListWorkers& request);
  void Do(int connection, const GetStats& request);
  void Do(int connection, const TakeSession& request);
  void Do(int connection, const SetGrace& request);
  void Keep(const KeepSession& request, std::vector<wire::Descriptor> descriptors);
  void KeepEnd(const Worker& worker, const std::string& how);
  ChargeStats Charges() const;
  HealthStats Health() const;
  void Do(int connection, const SetQuota& request);
  void Do(int connection, const SetLimits& request);
  void SendLimits();
  void TakePolicy(const SetPolicy& request, std::vector<wire::Descriptor> descriptors);
  void SendPolicy(Keeper& keeper) const;
  // False: it is to be tried again.
  bool SendPlaced(const Keeper& keeper, uint64_t number, const Worker& worker) const;
  void Do(int connection, const message::LogTerms& request);
  void Do(int connection, const GetEvents& request);
  void Do(int connection, const GetWalls& request);
  void Reply(int connection, std::span<const std::byte> packet, std::span<const int> files = {});
  void ReplyStarted(int connection, uint64_t request, const Worker& worker, bool warm);
  WorkerStarted Started(const Worker& worker);
  static std::vector<int> DescriptorsOf(const Worker& worker);  // as WorkerStarted carries them
  std::string Check(const StartWorker& request);
  // The tenant's number in the ledger, a new one for a new name; 0 for nobody.
  uint32_t TenantNumber(const std::string& name);
  // Memory that is kept for sessions (promises.cc). RefuseStart kills a worker that is alive.
  static void Await(Worker& worker, const StartWorker& request, bool warm);
  void BeginMove(uint64_t number, const Worker& worker, uint64_t session, uint32_t tenant);
  void AssignTenant(uint64_t number, Worker& worker, uint32_t tenant);
  void TakePromised(int32_t device, const keeper::Promised& promised);
  void RefuseStart(Worker& worker, int32_t device, const std::string& why, bool alive);
  void RefuseStartsOn(int32_t device);
  AllPromises Promises() const;
  uint64_t FindSession(uint64_t session) const;  // the worker's number, 0 if none
  uint64_t StartNewWorker(const std::vector<int32_t>& devices,
                          const std::vector<std::string>& environment, std::string* sentence);
  Keeper* RunningKeeper(int32_t device, std::string* sentence);
  void AwaitKeeper(Keeper& keeper);
  void ReadKeeper(int32_t device);
  void TakeEvents(Keeper& keeper);
  void End(const keeper::EndWorker& end);
  void OnWorkerEnded(uint64_t number);
  void OnWorkerEnded(uint64_t number, int exit_code, int signal);
  // Walls: the starter runs, if that can be had, and starts the worker; see walls.cc.
  bool KeepStarter();
  bool MayStartWorkers(std::string* sentence) const;
  void SayWalls(const std::string& problem);
  Program StarterProgram() const;
  std::string WallsText(bool standing) const;
  std::vector<std::string> CacheVariables(const Worker& worker) const;
  void AssignFolders(const Worker& worker, const std::string& tenant);
  // Of the processors, among workers that have control groups.
  void SetWeights(uint32_t tenant);
  void ReadStarter();
  void Kill(const Worker& worker);
  void OnKeeperEnded(int32_t device);
  void Discard(Worker& worker);
  // True if it has to be called again soon without an event.
  bool KillOrphans();
  bool KeepKeepers();
  void CloseAccounts(uint64_t number, const Worker& worker);
  // A keeper's successor (succession.cc).
  static bool Uses(const Worker& worker, int32_t device);
  int SessionsOn(int32_t device) const;
  void PlanSuccessor(int32_t device);
  void KeepFigures(Keeper& keeper);
  void BeginSuccession(int32_t device);
  void SendAttaches(int32_t device);
  void HangUp(int32_t device);
  void HangUpLate(int32_t device);
  void TakeState(Keeper& keeper, keeper::KeeperState state);
  bool KeepWarm();
  // Whether a session of a tenant that is latency critical now has the device.
  bool HasLatencyCritical(int32_t device) const;
  void WarmDied(const Worker& worker);

  Options options_;
  CompileCache compile_cache_;
  StarterClient starter_;
  base::PollSet::Entry starter_said_;  // of this pass
  Clock::time_point starter_after_{};  // the next attempt to start it
  std::string walls_problem_;          // why there are none
  bool was_separate_ = false;          // a starter has run
  bool cannot_separate_ = false;       // this host gives no walls
  std::string driver_;                 // path of the library
  bool software_ = false;              // it is the software device
  bool own_network_ = false;           // workers get an empty network namespace
  std::unique_ptr<keeper::TenantLedger> ledger_;
  std::map<std::string, uint32_t> tenants_;  // their numbers in the ledger
  wire::Descriptor listener_;
  base::PollSet poll_set_;  // of this pass
  base::PollSet::Entry arrivals_;
  uid_t owner_ = 0;                        // of the socket's file
  std::map<int, Connection> connections_;  // by descriptor
  std::map<int32_t, Keeper> keepers_;      // by device
  std::map<uint64_t, Worker> workers_;     // by number
  std::vector<Gone> gone_;
  uint64_t next_worker_ = 1;
  std::map<uint64_t, uint64_t> sessions_;  // by worker's number, also of some that ended
  keeper::KeeperLimits limits_;            // the keepers'
  bool limits_due_ = false;                // they are to hear them again
  keeper::UsePolicy policy_;               // the keepers'
  std::vector<wire::Descriptor> policy_files_;
  message::LogTerms log_terms_;   // the workers'
  std::map<int32_t, Warm> warm_;  // by device
  Clock::time_point warm_after_{};
  std::chrono::milliseconds grace_;  // how long workers without a daemon live
  Clock::time_point last_needed_ = Clock::now();
};

}  // namespace longwire::warden
