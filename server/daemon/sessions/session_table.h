// All sessions of the daemon: opens, finds, lists and ends them. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/tls_files.h"
#include "server/admission/entrance.h"
#include "server/config/live_config.h"
#include "server/daemon/checkpoints/own_suspensions.h"
#include "server/daemon/checkpoints/suspended.h"
#include "server/daemon/moving/content_feed.h"
#include "server/daemon/moving/move_figures.h"
#include "server/daemon/moving/move_notes.h"
#include "server/daemon/policies/policies.h"
#include "server/daemon/policies/takers.h"
#include "server/daemon/pool/pool_places.h"
#include "server/daemon/sessions/farewells.h"
#include "server/daemon/sessions/identity_figures.h"
#include "server/daemon/sessions/images.h"
#include "server/daemon/sessions/opening_times.h"
#include "server/daemon/sessions/placement.h"
#include "server/daemon/sessions/refusal.h"
#include "server/daemon/sessions/scheduling.h"
#include "server/daemon/sessions/session.h"
#include "server/daemon/sessions/warden_client.h"
#include "server/daemon/sharing/awake_cores.h"
#include "server/daemon/sharing/linked_sessions.h"
#include "server/daemon/statistics/program_statistics.h"
#include "server/daemon/usage/usage_log.h"
#include "server/gates/host_memory_table.h"

namespace longwire::daemon {

struct OpenedSession {
  std::shared_ptr<ServerSession> session;  // nullptr when refused
  wire::OpenReply reply;                   // with a code and a sentence when refused
  std::vector<transport::Token> tokens;    // of each lane
};

// Where a pool has placed a session.
struct PlacedSession {
  std::string number;            // in the pool
  std::vector<int32_t> devices;  // none: one that the placement chooses
  uint64_t bytes = 0;            // promised on each
  uint64_t time_left = 0;        // of its time limit, in seconds; 0: what its program asks for
  uint64_t kept_by = 0;          // the number under which PlacementTable keeps the devices for it
  bool alone = false;            // nobody else gets these devices
  uint64_t instead_of = 0;       // the session of this server that goes on in it; 0: none
  std::vector<uint64_t> tried;   // sessions of this table that were made for it
};

// Another server, to which a session moves.
struct ServerPlace {
  std::string server;             // HOST:PORT; in a pool also a host's name, or empty: any host
  std::optional<int32_t> device;  // none: one that the placement there chooses
};

// Bytes that are kept for the session on each device; of what a pool has placed, what it placed.
// One that moves takes them along.
struct Requirements;
uint64_t DeclaredBytes(const Requirements& told, PlacedSession* placed);

class SessionTable {
 public:
  explicit SessionTable(const config::LiveConfig& live);
  ~SessionTable();

  // Connects to the warden, starting it if needed, and takes over an earlier daemon's sessions.
  bool Start(std::string* sentence);

  // Opens a session for an encoded OpenRequest of `peer`, with the worker's own rings if the peer
  // is at the local socket. `link`: the versions of the link between. Gives up when *cancelled is
  // set.
  // `placed`: in a pool, where it has to go.
  OpenedSession Open(std::span<const std::byte> request, wire::VersionRange link, const Peer& peer,
                     const std::atomic<bool>& cancelled, PlacedSession* placed = nullptr);
  // From now on sessions are opened where the pool has placed them, and nowhere else. Before the
  // first Open.
  void JoinPool(PoolPlaces* places) { pool_ = places; }
  // `request` is nullptr where it was not read.
  OpenedSession Refuse(const Peer& peer, const wire::OpenRequest* request, OpeningRefusal refusal);
  // Bytes of all devices that can be lent together; 0: not known yet.
  uint64_t lendable() const { return lendable_.load(); }
  std::shared_ptr<ServerSession> Find(uint64_t id);
  // Also by a number that it had before it moved, which its client goes on using.
  std::shared_ptr<ServerSession> FindAlsoMoved(uint64_t id);
  // Moves a session to another device of this server, or to one that the placement chooses
  // (session_move.cc). False with a sentence, and the session goes on where it is.
  bool Move(uint64_t id, std::optional<int32_t> device, std::string* sentence);
  // Moves the device's sessions to others, those that can; what became of each, for people. Once
  // it is cordoned.
  std::vector<std::string> MoveAwayFrom(int32_t device);
  // Moves a session to another server (moving/hand_over.cc). False with a sentence, and it goes on
  // here, unless that says otherwise.
  bool HandOver(uint64_t id, const ServerPlace& to, std::string* sentence);
  // All sessions; what became of each, for people. False if one of them is still here.
  bool HandOverAll(const std::string& server, std::vector<std::string>* sentences);
  // What this server shows to others; empty without TLS. Set it before the first HandOver.
  using Material = std::function<transport::TlsMaterial()>;
  void set_material(Material material) { material_ = std::move(material); }
  // A session that another server hands over to this one (moving/arrival.h).
  class Arrival;
  // What becomes of one that is prepared. False with a sentence: there is no such move (any more).
  enum class ArrivalEnd { kBegin, kDiscard, kForget };
  bool EndArrival(const std::string& move, ArrivalEnd end, uint64_t* session,
                  std::string* sentence);
  // The content of one that arrives from the server with this name; nullptr: there is none.
  std::shared_ptr<ContentFeed> FeedOf(const std::string& move, const std::string& from);
  // Where the session has gone that the attach has a right to, if it is not here.
  std::optional<GoneSession> GoneTo(const transport::Attach& attach, const Peer& peer);
  // Suspends a session into a file of this name (session_suspend.cc). False with a sentence, and
  // it goes on.
  // `limit`: of the file, in bytes.
  bool Suspend(uint64_t id, const std::string& file, std::string* sentence,
               uint64_t limit = UINT64_MAX);
  // A suspended session goes on, on the device or where the placement puts it (session_restore.cc).
  // False with a sentence, and it stays suspended.
  bool Restore(const std::string& file, std::optional<int32_t> device, std::string* sentence);
  // Ends a suspended session. False if there is none.
  bool EndSuspended(uint64_t id, const std::string& why);
  // How much longer to wait for the suspended session that the attach has a right to; none if there
  // is no such session.
  std::optional<std::chrono::milliseconds> WaitFor(const transport::Attach& attach,
                                                   const Peer& peer);
  MoveNotes& move_notes() { return move_notes_; }
  const MoveFigures& move_figures() const { return move_figures_; }
  Suspended& suspended() { return suspended_; }
  OwnSuspensions& own_suspensions() { return own_suspensions_; }
  std::vector<std::shared_ptr<ServerSession>> List();
  // Why a session ended that was the peer's; empty if there is none.
  std::string FarewellTo(const Peer& peer, uint64_t session);
  // Ends it, kills its worker and forgets it.
  void End(const std::shared_ptr<ServerSession>& session, const transport::Closed& closed);
  void EndAll(const transport::Closed& closed);
  // Reports that a session may have lost its connection: its resume_grace is watched.
  void Detached();
  // Ends all sessions and refuses new ones.
  void Close();
  // Refuses new ones and lets go of all, so that another daemon can take them over. Nothing ends
  // them here any more.
  void Leave();
  bool left() const { return left_.load(); }
  // Leaves with the warden what the next daemon has to know of the session. `client`: the socket of
  // a local one.
  void Keep(const ServerSession& session, int client = -1);
  // Local clients whose sessions were taken over, with their sockets; once.
  using LocalClients = std::vector<std::pair<std::shared_ptr<ServerSession>, wire::Descriptor>>;
  LocalClients InheritedClients();
  // Whether new sessions are refused while those that run go on.
  void SetDraining(bool draining);
  bool draining();

  // Says why a session that has just been opened has no right to it any more; empty if it has. Set
  // it before the first Open.
  using Check = std::function<std::string(const ServerSession& session)>;
  void set_check(Check check) { check_ = std::move(check); }

  // Answers what a session's worker asks about bridges. Set it before the first Open; nothing is
  // asked any more once it is empty again.
  using OnAsked =
      std::function<void(const std::shared_ptr<ServerSession>& session, const bridges::Ask& ask)>;
  void set_bridges(OnAsked asked);

  WardenClient& warden() { return *warden_; }
  Scheduling& scheduling() { return *scheduling_; }
  AwakeCores& awake_cores() { return awake_cores_; }
  Images& images() { return images_; }
  gates::HostMemoryTable& host_memory() { return host_memory_; }
  admission::Entrance& entrance() { return entrance_; }
  // How many streams the identity's sessions have, which it may resume.
  size_t StreamsOf(const std::string& identity);
  PlacementTable& placements() { return placements_; }
  Policies& policies() { return *policies_; }
  // Who has to take what policies() loads or unloads.
  Takers TakersOfPolicies();
  IdentityFigures& identities() { return identities_; }
  ProgramStatistics& statistics() { return statistics_; }
  OpeningTimes& opening_times() { return opening_times_; }
  std::vector<UsageRecord> RecentlyEnded() const { return usage_->Recent(); }
  uint64_t opened() const { return opened_.load(); }
  uint64_t failed() const { return failed_.load(); }
  // The devices that a session of the tenant would get now; none with a sentence.
  std::vector<int32_t> ForecastDevices(const config::Tenant& tenant,
                                       const std::vector<std::string>& environment,
                                       const warden::Stats& stats, std::string* sentence);
  // Sends running sessions the terms that a reload has changed.
  void SendTerms(const config::Config& config);
  // The configuration in force.
  config::LiveConfig::Snapshot config() const { return live_.Get(); }

 private:
  void AskAboutBridges(uint64_t session, const bridges::Ask& ask);
  // `prepared`: it goes on for another session later.
  void GiveRules(ServerSession& session, gates::GatePage& page, bool prepared);
  // Where its worker counts what its kernels and rules do; null: nowhere.
  std::shared_ptr<statistics::Page> StatisticsFor(const config::Config& config,
                                                  const ServerSession& session,
                                                  bool prepared = false);
  void SendStatistics(const config::Config& config, const ServerSession& session);
  // What a session needs to hear once it is in the table: a reload, or a change of the policies,
  // while it was opened did not find it (session_policies.cc).
  void SendNewTerms(const config::LiveConfig::Snapshot& before, const ServerSession& session);
  void MakePolicies();
  // Warden and awake cores hear the classes of tenants that are in force now.
  void TellTerms();
  // What the warden has to know: it may have started anew.
  void RepeatTerms();
  static void SendRules(const config::Config& config, const ServerSession& session);
  static OpeningRefusal Stopping();
  // What Open does once the peer is counted: a worker that has answered, in the table; nullptr with
  // a refusal.
  std::shared_ptr<ServerSession> OpenAdmitted(const wire::OpenRequest& request,
                                              std::span<const std::byte> introduction,
                                              wire::VersionRange versions, const Peer& peer,
                                              const std::atomic<bool>& cancelled,
                                              PlacedSession* placed, OpenedSession* opened,
                                              OpeningRefusal* refusal);
  void NoteDevices(const warden::Stats& stats);
  class Mover;
  class RoomMaker;
  class Suspender;
  class Restorer;
  class Successor;
  class Giver;
  // Bytes of device memory.
  uint64_t LeasedBy(uint64_t session);
  // Where so much is free, but for its own device; where most is first.
  std::vector<int32_t> DevicesFor(const ServerSession& session, uint64_t bytes);
  // Sessions move to other devices so that one gets in that fits nowhere (make_room.cc). False if
  // there is no room all the same; those that have moved stay where they are then.
  bool MakeRoom(const wire::OpenRequest& request, const Peer& peer,
                const std::atomic<bool>& cancelled, PlacedSession* placed);
  // Asks all whether they can move before the first one does. The session that did not move, after
  // which no other one did; 0: all have. `why` is for the log.
  uint64_t MoveAll(const std::vector<scheduler::SessionMove>& moves, const std::string& why,
                   const std::function<bool()>& may_go_on);
  // Completes the sentence about a move, and logs it. Returns `moved`.
  static bool Told(const ServerSession& session, bool moved, std::string* sentence);
  // The session with this number, which nobody else moves now; nullptr with a sentence.
  std::shared_ptr<ServerSession> FindToMove(uint64_t id, std::string* sentence);
  // It takes the place of the one that had its former numbers.
  void Enter(const std::shared_ptr<ServerSession>& session) LONGWIRE_REQUIRES(mutex_);
  // Its client may come.
  void HasBegun(const std::shared_ptr<ServerSession>& session);
  // One that was retired: its place is free.
  void PutAway(ServerSession& session, const std::string& why);
  // Ends suspended sessions whose time is over. False if there are none any more.
  bool EndLateSuspended();
  // Of a session that was taken over: it has not gone if its worker goes on; else it has.
  void SettleGone(const std::shared_ptr<ServerSession>& session);
  // It has no place here any more, and its worker ends. False if it has ended.
  bool TakeOut(const std::shared_ptr<ServerSession>& session, const std::string& why);
  // It went to another server and is nowhere now.
  void LoseGone(const GoneSession& gone, const std::string& why);
  // A move that this server offers to another one, as long as this lives.
  class GivenMove {
   public:
    GivenMove(SessionTable& table, const std::string& move) : table_(table), move_(move) {
      base::MutexLock lock(table_.mutex_);
      table_.given_.insert(move_);
    }
    ~GivenMove() {
      base::MutexLock lock(table_.mutex_);
      table_.given_.erase(move_);
    }
    GivenMove(const GivenMove&) = delete;
    GivenMove& operator=(const GivenMove&) = delete;

   private:
    SessionTable& table_;
    const std::string move_;
  };
  bool IsGiven(const std::string& move) {
    base::MutexLock lock(mutex_);
    return given_.contains(move);
  }
  // Asks other servers what has become of the sessions that have gone there, until it is known; and
  // forgets what nobody needs to know any more (moving/settling.cc).
  void SettleLoop();
  void Unsettled();
  bool SettleAll();
  void Settle(const GoneSession& gone);
  bool EndLateArrivals();
  void DropArrivals();
  // Of a session that was taken over: its ticket is void if its worker goes on; else it is
  // suspended.
  void SettleTicket(const std::shared_ptr<ServerSession>& session);
  // Counts a new session against the limits of its tenant and its identity; Release undoes it.
  bool Admit(const Peer& peer, size_t descriptors, OpeningRefusal* refusal);
  bool AdmitTenant(const config::Tenant& tenant, OpeningRefusal* refusal);
  void Release(const Peer& peer, size_t descriptors);
  // Empty with a sentence when there are none.
  std::vector<int32_t> ChooseDevices(uint64_t id, const config::Tenant& tenant,
                                     const std::vector<std::string>& environment,
                                     PlacedSession* placed, std::string* sentence);
  std::shared_ptr<ServerSession> StartSession(const wire::OpenRequest& request, const Peer& peer,
                                              bool want_warm, PlacedSession* placed,
                                              OpeningRefusal* refusal);
  // False with a sentence when the session has lost its right while it was opened; it is ended.
  bool MayStay(const std::shared_ptr<ServerSession>& session, std::string* sentence);
  // As far as its tenant and the host's cores allow.
  void MayStayAwake(ServerSession& session, std::shared_ptr<gates::GatePage> page);
  // Kills the worker of a session that has ended or could not be opened.
  void Abandon(uint64_t session);
  // What its worker gets once it is open: the limits of the host's memory, answers about images;
  // and the next daemon, what it has to know. `instead_of`: the session that goes on in it; 0:
  // none.
  std::string ServeWorker(ServerSession& session, const config::Tenant& tenant,
                          uint64_t instead_of = 0);
  // False when the system has no random bytes.
  bool MakeTokens(ServerSession& session, std::vector<transport::Token>* tokens);
  void Describe(const ServerSession& session, wire::OpenReply* reply);
  void TakeOver();
  void TakeOverWithdrawn();
  bool TakeOver(TakenSession taken);
  void TakeEnd(const TakenSession& taken);
  void OnWorkerDied(const warden::WorkerDied& died);
  void ReapLoop();
  bool EndAfterLimit(const std::shared_ptr<ServerSession>& session);
  // A record of what the session has used (recording.cc), while its seats are still there.
  UsageRecord RecordOf(ServerSession& session, const transport::Closed& closed);
  UsageLog::Source UsageSource();

  const config::LiveConfig& live_;
  std::atomic<uint64_t> next_id_;
  std::atomic<uint64_t> opened_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<bool> left_{false};
  LocalClients inherited_clients_;  // between Start and InheritedClients
  std::unique_ptr<WardenClient> warden_;
  std::unique_ptr<Scheduling> scheduling_;
  std::unique_ptr<MemoryPolicy> memory_policy_;  // tells warden_
  std::unique_ptr<LaunchPolicy> launch_policy_;  // tells the sessions' workers
  std::unique_ptr<Policies> policies_;           // tells scheduling_, placements_ and these
  std::unique_ptr<UsageLog> usage_;              // asks warden_
  AwakeCores awake_cores_;
  PlacementTable placements_;
  gates::HostMemoryTable host_memory_;
  IdentityFigures identities_;
  OpeningTimes opening_times_;
  ProgramStatistics statistics_;
  std::atomic<uint64_t> lendable_{0};  // of all devices, as the warden said last; 0: not yet
  Check check_;
  PoolPlaces* pool_ = nullptr;  // null: there is none
  LinkedSessions linked_sessions_;
  base::Mutex bridges_mutex_{base::ranks::kAskedBridges};
  OnAsked bridges_ LONGWIRE_GUARDED_BY(bridges_mutex_);
  Images images_;  // its threads use all above
  admission::Entrance entrance_;
  Suspended suspended_;
  OwnSuspensions own_suspensions_;
  MoveNotes move_notes_;
  MoveFigures move_figures_;
  Material material_;

  base::Mutex mutex_{base::ranks::kSessionTable};
  base::CondVar changed_;
  std::map<uint64_t, std::shared_ptr<ServerSession>> sessions_ LONGWIRE_GUARDED_BY(mutex_);
  std::set<std::string> given_ LONGWIRE_GUARDED_BY(mutex_);  // GivenMove
  // Where sessions that have moved are now, by their former numbers.
  std::map<uint64_t, uint64_t> moved_ LONGWIRE_GUARDED_BY(mutex_);
  Farewells farewells_ LONGWIRE_GUARDED_BY(mutex_);
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;  // no new sessions
  bool draining_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool making_room_ LONGWIRE_GUARDED_BY(mutex_) = false;  // for one session at a time
  // A session may have no connection.
  bool detached_ LONGWIRE_GUARDED_BY(mutex_) = true;                // or has a time limit
  std::map<std::string, size_t> held_ LONGWIRE_GUARDED_BY(mutex_);  // by tenant's name
  std::thread reaper_;
  base::CondVar unsettled_changed_;
  bool unsettled_ LONGWIRE_GUARDED_BY(mutex_) = true;
  // Of sessions that arrive, by their moves: the servers they come from, and their content.
  ArrivingFeeds arriving_ LONGWIRE_GUARDED_BY(mutex_);
  // That are prepared, by their moves.
  std::map<std::string, std::shared_ptr<Arrival>> arrivals_ LONGWIRE_GUARDED_BY(mutex_);
  std::thread settler_;
};

}  // namespace longwire::daemon
