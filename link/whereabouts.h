// Where a session is: its server, and its number there. Both change when it moves to another server
// (docs/moving.md). All its lanes share it: what one of them has heard holds for the others, too.
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/server_connection.h"
#include "link/transport/frame.h"

namespace longwire::link {

class Whereabouts {
 public:
  explicit Whereabouts(ServerConnection& servers) : servers_(servers) {}
  ~Whereabouts() { servers_.ForgetPlace(this); }
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;

  struct Place {
    uint64_t session = 0;
    std::string server;
    uint32_t moves = 0;  // that led there
  };

  // `program`: its process, which may ask where its session is (link/suspension.cc).
  void Begin(uint64_t session, const ServerChannel& server, pid_t program);
  Place Get();
  // What the server of that place has answered, to which `moves` led. False with a sentence if
  // nobody can connect to such a server.
  bool Move(uint32_t moves, const transport::Moved& moved, std::string* sentence);
  // A connection to the server, which may not be up yet.
  ServerChannel Connect();

 private:
  void Tell();

  ServerConnection& servers_;
  base::Mutex mutex_{base::ranks::kWhereabouts};
  pid_t program_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  Place place_ LONGWIRE_GUARDED_BY(mutex_);
  ServerChannel server_ LONGWIRE_GUARDED_BY(mutex_);  // how to reach it; without a connection
};

}  // namespace longwire::link
