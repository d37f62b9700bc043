// The gRPC front end: accepts calls on one thread, handles each on a thread of its own, so that a
// slow Open holds up nobody.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/transport.grpc.pb.h"
#include "server/daemon/listener.h"
#include "server/daemon/server_credentials.h"
#include "server/daemon/session_table.h"

namespace longwire::daemon {

class Admin;

// Execute and Transfer are raw: their messages are frames, not protobuf.
using Service =
    transport::Transport::WithAsyncMethod_Open<transport::Transport::WithAsyncMethod_Inspect<
        transport::Transport::WithAsyncMethod_Admin<transport::Transport::WithRawMethod_Execute<
            transport::Transport::WithRawMethod_Transfer<transport::Transport::Service>>>>>;

class AcceptLoop {
 public:
  explicit AcceptLoop(SessionTable& table) : table_(table) {}
  ~AcceptLoop();

  // Listens at every address of the configuration. False with a sentence.
  bool Start(std::string* sentence);
  // Reads the files of TLS that `config` names, for connections from now on. False with a sentence,
  // and all stays as it was, when they are not what they should be. A daemon without TLS gets none.
  bool ReloadCredentials(const config::Config& config, std::string* sentence);
  // Who is at the other end, judged by what is in force now.
  Peer PeerOf(const grpc::ServerContext& context);
  // Ends what is under way and waits for it.
  void Stop();

  // Something that waits for an event of the server's queue; deletes itself.
  class Waiting {
   public:
    virtual ~Waiting() = default;
    virtual void Happened(bool ok) = 0;
  };

  Service& service() { return service_; }
  grpc::ServerCompletionQueue& queue() { return *queue_; }
  SessionTable& table() { return table_; }
  // nullptr, and nobody administers anything, until it is set; it outlives Stop.
  Admin* admin() const { return admin_.load(); }
  void set_admin(Admin* admin) { admin_.store(admin); }
  // Runs `work` on a new thread; false when there are too many.
  bool Spawn(std::function<void()> work);
  bool stopping() const { return stopping_.load(); }

 private:
  // Whoever sleeps in gRPC's poller takes the events of all connections, also of those for which a
  // session's thread is looking, who then waits for the sleeper to wake. So while anybody spins
  // this thread only looks, and sleeps elsewhere.
  void Loop();
  bool StepsAside();
  void SpinningBegins();
  bool MakeCredentials(std::string* sentence);

  SessionTable& table_;
  Service service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::shared_ptr<TlsServerCredentials> tls_;  // nullptr: connections are not encrypted
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  Listener listener_;
  std::thread thread_;
  std::atomic<Admin*> admin_{nullptr};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> polls_{false};    // it sleeps in gRPC's poller, or is about to
  std::atomic<bool> knocked_{false};  // the alarm that wakes it there is set
  grpc::Alarm step_aside_;
  Clock::time_point quiet_until_{};  // by Loop's thread: somebody spun shortly before
  base::Mutex mutex_{base::ranks::kAcceptLoop};
  base::CondVar fewer_;
  size_t threads_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

// Each starts to accept one call of its kind, and the next one once that has come.
void AcceptOpen(AcceptLoop& loop);
void AcceptInspect(AcceptLoop& loop);
void AcceptAdmin(AcceptLoop& loop);
void AcceptExecute(AcceptLoop& loop);
void AcceptTransfer(AcceptLoop& loop);

}  // namespace longwire::daemon
