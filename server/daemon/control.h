// The daemon's control socket, for the administrators of its host: root, the daemon's own user, and
// the members of the group that the key admin_group names; those of watch_group may see what they
// see, and change nothing. The kernel says who connects. Unlike a signal it answers: systemctl
// reload fails with the reasons when a configuration is refused. access/control_client.h has the
// other end and what is said.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "server/daemon/access/control_client.h"
#include "server/daemon/settings/reload.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Control {
 public:
  // Called on threads of Control's own, several at once; `who`: the requester, for the log.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;
  struct Caller {
    std::string name;         // for the log
    bool administers = true;  // else it may only look
  };
  // The encoded reply to an encoded request.
  using Answer = std::function<std::string(const Caller& caller, std::string_view request)>;
  // Names; who is in neither may not use it. Empty, or no such group: nobody.
  struct Groups {
    std::string admin;
    std::string watch;
  };

  explicit Control(Reload reload, Answer answer = {})
      : reload_(std::move(reload)), answer_(std::move(answer)) {}
  ~Control() { Stop(); }

  // False with a sentence.
  bool Start(const std::string& path, std::string* sentence, const Groups& groups = {});
  void Stop();

 private:
  enum class Right { kNone, kWatch, kAdminister };

  void OpenTo(const Groups& groups);
  Right RightOf(int socket, const wire::Credentials& peer) const;
  void Loop();
  // One that takes minutes, as a move does, keeps no other one waiting.
  void ServeBeside(wire::Descriptor socket, Caller caller);
  void Serve(const wire::Descriptor& socket, const Caller& caller);
  // Those that have ended.
  void JoinCalls(bool all);

  const Reload reload_;
  const Answer answer_;
  std::string path_;
  std::optional<gid_t> admin_group_, watch_group_;  // constant after Start
  wire::Descriptor listener_;
  std::thread thread_;
  struct Call {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  std::list<Call> calls_;  // used by thread_ alone
  std::atomic<bool> stopping_{false};
};

}  // namespace longwire::daemon
