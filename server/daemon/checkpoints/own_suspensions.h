// What programs that suspend themselves may take of the server's disk, their tenant's together.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/config/config.h"
#include "server/daemon/checkpoints/suspended.h"

namespace longwire::daemon {

// How the files are called that programs have suspended themselves into. No others are.
inline const std::string kOwnFiles = "own-";

// How many bytes the tenant's next such file may have. False with a sentence if there may be none.
bool BytesLeft(const config::Config& config, const std::vector<Ticket>& suspended,
               const std::string& tenant, uint64_t* bytes, std::string* sentence);

// One suspension of a tenant's programs at a time: the next one sees what this one has taken.
class OwnSuspensions {
 public:
  class Turn {
   public:
    Turn(OwnSuspensions& all, const std::string& tenant);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool begins() const { return begins_; }

   private:
    OwnSuspensions& all_;
    const std::string tenant_;
    const bool begins_;
  };

 private:
  bool Begin(const std::string& tenant);
  void End(const std::string& tenant);

  base::Mutex mutex_{base::ranks::kOwnSuspensions};
  std::set<std::string> tenants_ LONGWIRE_GUARDED_BY(mutex_);  // that have a turn
};

}  // namespace longwire::daemon
