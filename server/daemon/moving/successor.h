// The worker in which a session goes on: started, told to rebuild the session from a stream, and
// let go once it has what the old one had. Until then it ends with this.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/daemon/moving/old_worker.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {

class SessionTable::Successor {
 public:
  explicit Successor(SessionTable& table) : table_(table) {}
  ~Successor();
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  // On its device, or where the placement finds room for its bytes. False with a sentence.
  bool Start(const std::string& request, const Peer& peer, PlacedSession* placed,
             wire::Descriptor stream, std::string* sentence);
  // After a round: whether what it has read is the same here.
  bool IsAhead(std::string* sentence);
  // Whether it has rebuilt what it has read, and all is the same.
  bool IsRebuilt(std::string* sentence);
  // After one of these was false: what was rebuilt ahead does not go together with what came
  // later. Another worker that does all at once may do.
  bool again() const { return again_; }
  // It runs from here on, and does not end with this any more. False if it has ended.
  bool Go();
  // Somebody else ends it.
  void Keep() { kept_ = true; }
  const std::shared_ptr<ServerSession>& session() const { return session_; }
  int32_t device() const { return session_->worker().keepers.front().device; }

 private:
  SessionTable& table_;
  std::shared_ptr<ServerSession> session_;
  wire::Descriptor packets_;
  int rounds_ = 0;  // that it has rebuilt
  bool again_ = false;
  bool kept_ = false;
};

}  // namespace longwire::daemon
