// The daemon's control socket, for its operator. Unlike a signal it answers: systemctl reload fails
// with the reasons when a configuration is refused.
//
// One packet each way over a SOCK_SEQPACKET socket: "reload", then "done" or "refused" and a
// sentence on each further line.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "server/daemon/reload.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Control {
 public:
  // Called on a thread of Control's own; `who`: the requester, for the log.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;

  explicit Control(Reload reload) : reload_(std::move(reload)) {}
  ~Control() { Stop(); }

  // False with a sentence.
  bool Start(const std::string& path, std::string* sentence);
  void Stop();

 private:
  void Loop();
  void Serve(const wire::Descriptor& socket);

  const Reload reload_;
  std::string path_;
  wire::Descriptor listener_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
};

// The path of the control socket of this user's daemon.
std::string ControlPath();

// Asks the daemon whose control socket is at `path`. False if the reload was refused or there is no
// answer; *text has the reasons, a line each.
bool AskForReload(const std::string& path, std::string* text);

}  // namespace longwire::daemon
