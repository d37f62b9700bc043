// What sessions' workers ask about bridges between servers (server/protocol/bridges.h): makes the
// secrets, and connects lanes of this server's sessions to those of other servers. A server does so
// with its own certificate, and only to servers of its own authority; without TLS to those without.
#pragma once

#include <memory>

#include "server/daemon/accept_loop.h"
#include "server/daemon/sessions/session.h"
#include "server/daemon/sessions/session_table.h"
#include "server/protocol/bridges.h"

namespace longwire::daemon {

class Bridges {
 public:
  // Both outlive it.
  Bridges(SessionTable& table, AcceptLoop& loop);
  ~Bridges() { table_.set_bridges({}); }
  Bridges(const Bridges&) = delete;
  Bridges& operator=(const Bridges&) = delete;

 private:
  using SessionPointer = std::shared_ptr<ServerSession>;
  void Asked(const SessionPointer& session, const bridges::Ask& ask);
  // Answers when all lanes are joined, or one is not.
  void Connect(const SessionPointer& session, const bridges::Ask& ask);

  SessionTable& table_;
  AcceptLoop& loop_;
};

}  // namespace longwire::daemon
