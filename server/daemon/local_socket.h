// The daemon's own door: programs of this host get the worker's rings themselves.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/session_table.h"
#include "wire/socket.h"

namespace longwire::daemon {

class LocalDoor {
 public:
  explicit LocalDoor(SessionTable& table) : table_(table) {}
  ~LocalDoor() { Stop(); }

  // False, with a sentence for the operator, when nobody can be let in there.
  bool Start(const std::string& path, std::string* sentence);
  // Lets those knock whom `config` names. Who comes in is decided for each by its uid.
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
  base::Mutex mutex_{base::ranks::kLocalDoor};
  base::CondVar fewer_;
  size_t clients_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::daemon
