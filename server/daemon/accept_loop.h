// The gRPC front end: accepts calls on one thread and handles each on a thread of its own, so that
// a slow Open delays no other call.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/transport.grpc.pb.h"
#include "server/daemon/access/revocations.h"
#include "server/daemon/listener.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/server_credentials.h"

namespace longwire::daemon {

class Admin;
class Pool;

// Execute, Transfer and HandOver are raw: their messages are frames, not protobuf.
using Service = transport::Transport::WithAsyncMethod_Open<
    transport::Transport::WithAsyncMethod_Inspect<transport::Transport::WithAsyncMethod_Admin<
        transport::Transport::WithAsyncMethod_Suspend<transport::Transport::WithRawMethod_Execute<
            transport::Transport::WithRawMethod_Transfer<
                transport::Transport::WithRawMethod_HandOver<transport::Transport::Service>>>>>>>;

class AcceptLoop {
 public:
  explicit AcceptLoop(SessionTable& table) : table_(table) {}
  ~AcceptLoop();

  // Listens at every address of the configuration. False with a sentence.
  bool Start(std::string* sentence);
  // Reads the TLS files and revoked certificates that `config` names, for connections from now on.
  // False with a sentence, and nothing changes, when one is invalid. Does nothing in a daemon
  // without TLS.
  bool ReloadCredentials(const config::Config& config, std::string* sentence);
  Revocations& revocations() { return revocations_; }
  // Says why the chain (PEM) is no proof any more; empty when it is.
  std::string Distrust(const std::string& chain);
  // What it shows and trusts; empty without TLS.
  transport::TlsMaterial Material() const;
  // Why who showed a chain (PEM) may not read what an administrator sees; empty if it may.
  std::string RefusalToRead(const std::string& chain, const std::string& address);
  // The holder of a certificate chain (PEM) that another process of this host has seen proof of. As
  // PeerOf; here the authority is looked at, too, which TLS does for connections.
  Peer HolderOf(const std::string& chain);
  // When the server's certificate expires; none without TLS.
  std::optional<std::time_t> CertificateExpires() const;
  // The caller, by the configuration and certificates that are in force now.
  Peer PeerOf(const grpc::ServerContext& context);
  // Ends what is under way and waits for it.
  void Stop();

  // Waits for one event of the server's queue; deletes itself.
  class Waiting {
   public:
    virtual ~Waiting() = default;
    virtual void Happened(bool ok) = 0;
  };

  Service& service() { return service_; }
  grpc::ServerCompletionQueue& queue() { return *queue_; }
  SessionTable& table() { return table_; }
  // nullptr until it is set: Admin calls are then refused. Outlives Stop.
  Admin* admin() const { return admin_.load(); }
  void set_admin(Admin* admin) { admin_.store(admin); }
  // nullptr: the server is alone. Set before Start; outlives Stop.
  Pool* pool() const { return pool_; }
  void set_pool(Pool* pool) { pool_ = pool; }
  // Runs `work` on a new thread; false when the daemon stops. The caller bounds their number
  // (server/admission/entrance.h).
  bool Spawn(std::function<void()> work);
  // A thread of Spawn's has ended, or did not start.
  void CountEnded();
  // A session has a stream on the peer's connection; not any more.
  void Attached(const Peer& peer) { table_.entrance().connections().Attached(peer.address); }
  void Detached(const Peer& peer);
  bool stopping() const { return stopping_.load(); }

 private:
  // A thread that sleeps in gRPC's poller receives the events of all connections, also of those for
  // which a session's thread spins, and that thread then waits for the sleeper to wake. So while
  // any thread spins, this one only polls, and sleeps outside the poller.
  void Loop();
  bool YieldsPoller();
  void SpinningBegins();
  bool MakeCredentials(std::string* sentence);

  SessionTable& table_;
  Service service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::shared_ptr<TlsServerCredentials> tls_;  // nullptr: connections are not encrypted
  Revocations revocations_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  Listener listener_;
  std::thread thread_;
  std::atomic<Admin*> admin_{nullptr};
  Pool* pool_ = nullptr;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> polls_{false};     // sleeps in gRPC's poller, or is about to
  std::atomic<bool> wake_set_{false};  // wake_alarm_ is set
  grpc::Alarm wake_alarm_;
  Clock::time_point quiet_until_{};  // used by Loop's thread: some thread spun shortly before
  base::Mutex mutex_{base::ranks::kAcceptLoop};
  base::CondVar fewer_;
  size_t threads_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

// As long as a session's stream is on a connection.
class OnConnection {
 public:
  OnConnection(AcceptLoop& loop, const Peer& peer) : loop_(loop), peer_(peer) {
    loop_.Attached(peer_);
  }
  ~OnConnection() { loop_.Detached(peer_); }
  OnConnection(const OnConnection&) = delete;
  OnConnection& operator=(const OnConnection&) = delete;

 private:
  AcceptLoop& loop_;
  const Peer& peer_;
};

// Each accepts one call of its kind, and the next one when that has arrived.
void AcceptOpen(AcceptLoop& loop);
void AcceptInspect(AcceptLoop& loop);
void AcceptAdmin(AcceptLoop& loop);
void AcceptSuspend(AcceptLoop& loop);
void AcceptExecute(AcceptLoop& loop);
void AcceptTransfer(AcceptLoop& loop);
void AcceptHandOver(AcceptLoop& loop);

}  // namespace longwire::daemon
