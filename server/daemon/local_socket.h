// The daemon's unix socket for programs of this host: they get the worker's rings themselves, with
// no link and no connection between.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/session_table.h"
#include "wire/socket.h"

namespace longwire::daemon {

class LocalSocket {
 public:
  explicit LocalSocket(SessionTable& table) : table_(table) {}
  ~LocalSocket() { Stop(); }

  // False, with a sentence for the operator, when the socket cannot be opened.
  bool Start(const std::string& path, std::string* sentence);
  // Lets other users connect if `config` names any. Each is then admitted or refused by its uid.
  void SetMode(const config::Config& config);
  void Stop();

 private:
  void Loop();
  void Serve(wire::Descriptor socket);

  SessionTable& table_;
  std::string path_;
  wire::Descriptor listener_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  base::Mutex mutex_{base::ranks::kLocalSocket};
  base::CondVar fewer_;
  size_t clients_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::daemon
