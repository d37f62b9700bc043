// The daemon's control socket, for the administrators of its host: root, the daemon's own user, and
// the members of the group that the key admin_group names. The kernel says who connects. Unlike a
// signal it answers: systemctl reload fails with the reasons when a configuration is refused.
// access/control_client.h has the other end and what is said.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "server/daemon/access/control_client.h"
#include "server/daemon/settings/reload.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Control {
 public:
  // Called on a thread of Control's own; `who`: the requester, for the log.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;
  // The encoded reply to an encoded request.
  using Answer = std::function<std::string(const std::string& who, std::string_view request)>;

  explicit Control(Reload reload, Answer answer = {})
      : reload_(std::move(reload)), answer_(std::move(answer)) {}
  ~Control() { Stop(); }

  // `group`: whose members may use it, too; nobody else if it is empty or there is none. False with
  // a sentence.
  bool Start(const std::string& path, std::string* sentence, const std::string& group = "");
  void Stop();

 private:
  void OpenToGroup(const std::string& group);
  bool IsAllowed(int socket, const wire::Credentials& peer) const;
  void Loop();
  void Serve(const wire::Descriptor& socket, const std::string& who);

  const Reload reload_;
  const Answer answer_;
  std::string path_;
  std::optional<gid_t> group_;  // constant after Start
  wire::Descriptor listener_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
};

}  // namespace longwire::daemon
