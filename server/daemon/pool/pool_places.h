// What the sessions of this host need of its pool, if it is in one (server/daemon/pool).
// Thread-safe; called without locks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

class ServerSession;
struct PlacedSession;

// A place at another host of the pool, for a session that moves there.
struct FarPlace {
  std::string host, address;
  std::string number, ticket;          // of its claim there
  std::string from_host, from_number;  // of the one that it has
};

struct FarWish {
  std::string to;               // a host's name or address; empty: any that takes sessions
  std::set<std::string> avoid;  // hosts
  uint64_t time_left = 0;       // of its time limit, in seconds; 0: it has none
};

class PoolPlaces {
 public:
  virtual ~PoolPlaces() = default;
  // Its number in the pool, which it keeps when it moves.
  virtual std::string NumberOf(const ServerSession& session) const = 0;
  // It has ended, or was suspended: its place is free once nothing is left of it.
  virtual void Gone(const ServerSession& session) = 0;

  // Whether a session may go to another device of this host: it has both until Moved. False with a
  // sentence.
  virtual bool MayMove(const ServerSession& session, int32_t device, std::string* sentence) = 0;
  // After MayMove, whatever came of it. `left`: the number of the worker in which it does not run.
  virtual void Moved(const ServerSession& session, uint64_t left) = 0;

  // A place at another host for a session of this one, which was opened by this
  // wire::OpenRequest. False with a sentence. What nobody comes for goes back by itself.
  virtual bool PlaceElsewhere(const ServerSession& session, const std::string& request,
                              const FarWish& wish, FarPlace* place, std::string* sentence) = 0;
  // The place that a session has here which comes from another host; else as Place.
  virtual bool TakePlace(const Peer& peer, const FarPlace& place, std::optional<int32_t> device,
                         PlacedSession* placed, std::string* sentence) = 0;

  // A place on this host for a session that was suspended, which was opened by this
  // wire::OpenRequest; on the device if one is named. False with a sentence; else exactly one of
  // the two is called later.
  virtual bool Place(const Peer& peer, const std::string& request, std::optional<int32_t> device,
                     PlacedSession* placed, std::string* sentence) = 0;
  virtual void Opened(const PlacedSession& placed) = 0;
  virtual void NotOpened(const PlacedSession& placed) = 0;
};

}  // namespace longwire::daemon
