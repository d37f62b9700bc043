// Why sessions ended whose clients had no connection then: they hear it when they come back. For a
// while, and of a bounded number of sessions. Used under the table's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

class Farewells {
 public:
  // `time`: how long the client may come back.
  void Add(uint64_t session, const std::string& identity, const std::string& tenant,
           std::string sentence, std::chrono::milliseconds time);
  // For a peer of the session's identity and tenant; empty if there is nothing to say.
  std::string For(uint64_t session, const Peer& peer) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Farewell {
    std::string identity, tenant, sentence;
    Clock::time_point until;
  };

  std::map<uint64_t, Farewell> all_;  // by session
};

}  // namespace longwire::daemon
