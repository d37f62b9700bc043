// The daemon's connection to longwire-warden: requests workers and statistics, and is notified of
// workers' deaths. Thread-safe. A thread of its own reads the warden's packets.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/config.pb.h"
#include "server/protocol/kept_session.h"
#include "server/protocol/log_terms.h"
#include "server/protocol/policies.h"
#include "server/protocol/warden.h"
#include "wire/socket.h"
#include "wire/versions.h"

namespace longwire::daemon {

// A started worker, with the descriptors that the warden sent.
struct StartedWorker {
  warden::WorkerStarted started;
  wire::Descriptor control;
  wire::Descriptor up;
  wire::Descriptor down;
  wire::Descriptor pidfd;
};

// A session of an earlier daemon, with what that left for this one.
struct TakenSession {
  StartedWorker worker;
  std::string record;
  std::vector<wire::Descriptor> kept;
};

class WardenClient {
 public:
  struct Events {
    std::function<void(const warden::WorkerDied&)> worker_died;
    std::function<void()> warden_lost;
  };
  // Starts the warden. Called when none answers at its socket.
  using Starter = std::function<bool(std::string* sentence)>;

  WardenClient(std::string socket, Starter starter, Events events);
  ~WardenClient();

  // Connects unless it is connected. False with a sentence; *silent: a process listens but has not
  // sent its versions yet. Callers that come meanwhile wait for the same attempt.
  bool Connect(std::string* sentence, bool* silent = nullptr);
  bool IsConnected();
  // started.code is not 0 when there is no worker, and started.sentence says why.
  StartedWorker Start(warden::StartWorker request);
  void Kill(uint64_t session);
  // Applies to leases from now on.
  void SetQuota(const warden::SetQuota& quota);
  // Whether tenants that have sessions are latency critical now; of others the quota says it.
  void SetLatencyCritical(const std::map<std::string, bool>& tenants);
  // From now on the tenant's limit is at most this part of its limit over the pool.
  void SetPart(const std::string& tenant, uint64_t bytes, const warden::PoolPart& part);
  void SetLimits(const keeper::KeeperLimits& limits);
  void SetLogTerms(const message::LogTerms& terms);
  // False if the warden is too old for it. Without a warden it has to be said again.
  bool SetPolicy(const warden::SetPolicy& policy, std::span<const int> descriptors);
  // nullopt if the warden does not answer soon.
  std::optional<warden::Stats> GetStats(std::string* sentence);
  // For a session that is opened: waits for a warden that is busy as it waits for its worker.
  std::optional<warden::Stats> GetStatsToOpen(std::string* sentence);
  // nullopt if the warden does not answer, or is too old to know.
  std::optional<warden::Walls> GetWalls();
  // A device's memory events after that number; empty if the warden does not answer.
  std::vector<keeper::MemoryEvent> GetEvents(int32_t device, uint64_t after);
  // Leaves something about a session for the next daemon; replaces what was left before. A warden
  // that is too old for it keeps nothing.
  void Keep(const warden::KeepSession& session, std::span<const int> descriptors);
  // How long the warden keeps sessions without a daemon.
  void SetGrace(std::chrono::milliseconds grace);
  // The next session of an earlier daemon whose number is higher than `after`, which is this one's
  // from now on. A warden that keeps nothing about sessions has its workers killed here.
  std::optional<TakenSession> Take(uint64_t after);

 private:
  struct Pending {
    bool list = false;  // several messages, ListEnd last
    bool done = false;
    std::vector<wire::Message> messages;
  };
  std::optional<warden::Stats> GetStats(std::chrono::milliseconds patience, std::string* sentence);
  // The messages that answer `packet`, whose request number is `number`; none with a sentence.
  std::vector<wire::Message> Ask(uint64_t number, bool list, std::span<const std::byte> packet,
                                 std::chrono::milliseconds patience, std::string* sentence);
  bool ConnectUntil(std::chrono::steady_clock::time_point deadline, std::string* sentence,
                    bool* silent);
  bool TryToConnect(std::string* sentence, bool* silent);
  // Exchanges Hello on the new connection; the warden's versions, nullopt if it does not answer.
  std::optional<wire::VersionRange> Greet(wire::Descriptor* socket);
  // Never waits for the warden: what its socket does not take is sent later, in order. False if it
  // has gone, or too much waits already; kNone: then, too.
  enum class Bound { kSome, kNone };
  bool Send(std::span<const std::byte> packet, Bound bound, std::span<const int> descriptors = {})
      LONGWIRE_REQUIRES(mutex_);
  void Tell(std::span<const std::byte> packet, Bound bound, std::span<const int> descriptors = {});
  void SendWaiting();
  void SendQuota(const std::string& tenant) LONGWIRE_REQUIRES(mutex_);
  void ReadLoop();
  void HandleMessage(wire::Message message);
  template <class M>
  void AnswerWith(wire::Message message);  // to M::request, unless it is no M
  void Answer(uint64_t number, wire::Message message);
  void LoseConnection();
  bool WardenKeeps() const;
  void KillLeftovers();
  static bool TakeDescriptors(std::vector<wire::Descriptor>& descriptors, StartedWorker* worker);

  const std::string socket_path_;
  const Starter starter_;
  const Events events_;
  std::atomic<uint64_t> next_request_{1};
  std::atomic<bool> ending_{false};
  std::atomic<bool> takes_log_terms_{false};  // whether the warden knows them

  wire::Descriptor wake_;  // for the reader: something waits to be sent

  // Of the thread that connects. Without a rank: it may wait until a warden has started.
  base::Mutex connect_mutex_ LONGWIRE_ACQUIRED_BEFORE(mutex_);
  std::thread reader_ LONGWIRE_GUARDED_BY(connect_mutex_);
  // The protocol version in use.
  std::atomic<uint32_t> version_{0};

  base::Mutex mutex_{base::ranks::kWardenClient};
  base::CondVar answered_;
  std::shared_ptr<wire::Descriptor> socket_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Pending> pending_ LONGWIRE_GUARDED_BY(mutex_);
  struct Waiting {
    std::vector<std::byte> packet;
    std::vector<wire::Descriptor> descriptors;
  };
  std::deque<Waiting> waiting_ LONGWIRE_GUARDED_BY(mutex_);  // to be sent
  size_t waiting_bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  struct QuotaOfTenant {
    std::optional<warden::SetQuota> quota;  // by this server's configuration
    uint64_t bytes = UINT64_MAX;            // part of a limit over the pool
    warden::PoolPart part;
  };
  std::map<std::string, QuotaOfTenant> quotas_ LONGWIRE_GUARDED_BY(mutex_);  // as many as tenants
  std::map<std::string, bool> latency_critical_ LONGWIRE_GUARDED_BY(mutex_);
  bool connecting_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint64_t attempts_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::string last_problem_ LONGWIRE_GUARDED_BY(mutex_);  // of the last attempt
};

// Starts `longwire-warden` from the daemon's own folder, detached, and waits until it answers.
bool StartWarden(const config::Config& config, std::string* sentence);
// For service managers, which start the two: makes this process `longwire-starter`, and returns
// only if that fails, with a sentence; writes what the warden has to know of the configuration, for
// its option --settings.
void BecomeStarter(const config::Config& config, std::string* sentence);
bool WriteWardenSettings(const config::Config& config, const std::string& path,
                         std::string* sentence);

}  // namespace longwire::daemon
