// Who may connect to a session's lanes as the other end of a bridge (server/protocol/bridges.h).
//
// Two secrets are needed: a ticket, which this session's client carries to the other server, and
// what the other session's daemon has offered and never shows to a client. So a ticket is of no use
// to another session, even of the same server, and to nobody after a short time. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/settings/token.h"

namespace longwire::daemon {

// Of one session.
class BridgeRights {
 public:
  using Now = std::chrono::steady_clock::time_point;
  // How long a ticket is good: the client carries it over at once.
  static constexpr std::chrono::seconds kTicketTime{20};

  // The secret by which this session's lanes from `first_lane` on connect elsewhere; the same until
  // a new one is offered. nullopt when the system has no random bytes.
  std::optional<transport::Token> Offer(uint32_t first_lane);
  std::optional<transport::Token> Offered(uint32_t first_lane);

  // The right to connect to the lanes from `first_lane` on, for who has the secret of this digest.
  // It takes the place of an earlier one.
  std::optional<transport::Token> Ticket(uint32_t first_lane, uint32_t lanes,
                                         const TokenHash& digest, Now now);
  // Whether they open this lane; each ticket does so once for a lane.
  bool Take(uint32_t lane, const transport::Token& ticket, const transport::Token& offer, Now now);

  // Connects one bridge of the session at a time. False while another one is being connected.
  bool BeginConnecting() { return !connecting_.exchange(true); }
  void EndConnecting() { connecting_ = false; }

 private:
  struct Right {
    TokenHash ticket{};
    TokenHash offer{};
    Now expires;
  };
  std::atomic<bool> connecting_{false};
  base::Mutex mutex_{base::ranks::kBridgeRights};
  // By first lane, and by lane: at most as many as the session has lanes.
  std::map<uint32_t, transport::Token> offers_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint32_t, Right> rights_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
