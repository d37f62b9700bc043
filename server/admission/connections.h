// The daemon's network connections that have no session: how many of each address, how long, and
// how many bytes they may have sent. gRPC owns the connections; those that have to go are shut
// down, and it notices. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::admission {

class Connections {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    size_t of_address = 0;  // connections without a session
    size_t all = 0;
    uint64_t bytes = 0;  // that all of them together may have sent
    std::chrono::milliseconds opening_time{0};
  };
  struct Figures {
    size_t waiting = 0;   // without a session
    uint64_t closed = 0;  // since the daemon began
  };
  using LimitsNow = std::function<Limits()>;

  explicit Connections(LimitsNow limits) : limits_(std::move(limits)) {}

  // A connection was accepted. False: there is no room, even though older ones are closed; the
  // caller closes it. `peer` is an address with a port: 192.0.2.7:51234, [2001:db8::7]:51234.
  bool Arrived(int socket, const std::string& peer, Clock::time_point now);
  // Somebody who may use the server called on it.
  void Used(const std::string& peer);
  // A stream on it belongs to a session from now on; not any more.
  void Attached(const std::string& peer);
  void Detached(const std::string& peer, Clock::time_point now);

  // Closes those that take too long or have sent too much. Returns how soon it has to be called
  // again; a negative time: not before a connection arrives or loses its session.
  std::chrono::milliseconds Sweep(Clock::time_point now);
  Figures figures();

 private:
  struct Connection {
    int socket = -1;  // gRPC's: another file may have the number by now, which `file` shows
    ino_t file = 0;
    std::string host;  // the peer's, without the port
    bool used = false;
    bool spoke = false;     // has sent something, as far as somebody has looked
    uint32_t sessions = 0;  // streams on it that belong to one
    Clock::time_point since{};
    uint64_t bytes_before = 0;  // received before it waited
    uint64_t bytes = 0;         // received since, as of the last sweep
    bool closing = false;
  };
  using Entry = std::map<std::string, Connection>::iterator;

  // Forgets those that gRPC has closed.
  void DropClosed() LONGWIRE_REQUIRES(mutex_);
  void Close(Connection& connection) LONGWIRE_REQUIRES(mutex_);
  bool MakeRoom(const std::string& host, const Limits& limits) LONGWIRE_REQUIRES(mutex_);
  Connection* OldestOf(const std::string& host) LONGWIRE_REQUIRES(mutex_);
  // With one more of `arriving`.
  std::string HostWithMost(const std::string& arriving) LONGWIRE_REQUIRES(mutex_);
  void CloseTheLargest(uint64_t bytes, uint64_t most) LONGWIRE_REQUIRES(mutex_);

  const LimitsNow limits_;
  base::Mutex mutex_{base::ranks::kConnections};
  std::map<std::string, Connection> connections_ LONGWIRE_GUARDED_BY(mutex_);  // by peer
  uint64_t closed_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  Clock::time_point dropped_ LONGWIRE_GUARDED_BY(mutex_){};
};

}  // namespace longwire::admission
