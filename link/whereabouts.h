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

  struct Place {
    uint64_t session = 0;
    std::string server;
    uint32_t moves = 0;  // that led there
  };

  void Begin(uint64_t session, const ServerChannel& server);
  Place Get();
  // What the server of that place has answered, to which `moves` led. False with a sentence if
  // nobody can connect to such a server.
  bool Move(uint32_t moves, const transport::Moved& moved, std::string* sentence);
  // A connection to the server, which may not be up yet.
  ServerChannel Connect();

 private:
  ServerConnection& servers_;
  base::Mutex mutex_{base::ranks::kWhereabouts};
  Place place_ LONGWIRE_GUARDED_BY(mutex_);
  ServerChannel server_ LONGWIRE_GUARDED_BY(mutex_);  // how to reach it; without a connection
};

}  // namespace longwire::link
