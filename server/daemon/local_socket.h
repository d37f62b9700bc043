// The daemon's unix socket for programs of this host: they get the worker's rings themselves, with
// no link and no connection between.
//
// The kernel says which user connects. One thread waits for the requests of all connections, so
// that silent ones cost no thread; each user may have a limited number of these, and when all of
// them together are too many, the user with most loses the oldest.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/poll_set.h"
#include "server/daemon/sessions/session_table.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Pool;

class LocalSocket {
 public:
  explicit LocalSocket(SessionTable& table);
  ~LocalSocket() { Stop(); }

  // False, with a sentence for the operator, when the socket cannot be opened.
  bool Start(const std::string& path, std::string* sentence);
  // nullptr: the server is alone. Before Start.
  void set_pool(Pool* pool) { pool_ = pool; }
  // Lets other users connect if `config` names any. Each is then admitted or refused by its uid.
  void SetMode(const config::Config& config);
  // Goes on for clients of another daemon's local socket.
  void Inherit(SessionTable::LocalClients clients);
  void Stop();

 private:
  // A connection that has sent no request yet.
  struct Waiting {
    wire::Descriptor socket;
    uid_t uid = 0;
    std::string party;  // whose limit counts
    Clock::time_point deadline;
    base::PollSet::Entry request;  // of this pass
  };

  void Loop();
  // Takes those that have connected; true when some were closed at once.
  bool AcceptAll();
  // False when its user has too many already.
  bool Keep(wire::Descriptor socket);
  void TakeRequests(const base::PollSet& set);
  void Begin(Waiting& waiting);
  void CountEnded();
  void Serve(wire::Descriptor socket, uid_t uid, admission::Capacity::Share opening);
  // Until the client has gone, or the daemon leaves its sessions.
  void Accompany(const wire::Descriptor& socket, const std::shared_ptr<ServerSession>& session);

  SessionTable& table_;
  Pool* pool_ = nullptr;
  std::string path_;
  wire::Descriptor listener_;
  int accept_error_ = 0;     // why no program could be accepted
  wire::Descriptor leaves_;  // readable: the threads end, the sessions stay
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::list<Waiting> waiting_;  // used by Loop's thread; the oldest first
  base::Mutex mutex_{base::ranks::kLocalSocket};
  base::CondVar fewer_;
  size_t clients_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::daemon
