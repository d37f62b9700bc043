// What each identity did since the daemon began, for metrics. Of a bounded number of identities;
// all others are counted as one. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/sessions/refusal.h"
#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

struct IdentityCounts {
  uint64_t opened = 0;
  uint64_t refused = 0;
  // Of sessions that have ended.
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  double seconds = 0;
};

class IdentityFigures {
 public:
  static constexpr size_t kIdentityLimit = 256;
  static constexpr const char* kOthers = "(others)";
  using Key = std::pair<std::string, std::string>;  // tenant, identity

  void Opened(const Peer& peer);
  void Refused(const Peer& peer, RefusalReason reason);
  void Ended(const Peer& peer, uint64_t bytes_up, uint64_t bytes_down, double seconds);

  std::map<Key, IdentityCounts> Get();
  // By tenant; of peers that belong to none, under the empty name.
  std::map<std::string, RefusalCounts> Refusals();
  // Under which the peer is counted, and may be shown.
  Key KeyOf(const Peer& peer);

 private:
  Key Find(const Peer& peer) LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_{base::ranks::kIdentityFigures};
  std::map<Key, IdentityCounts> counts_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<std::string, RefusalCounts> refusals_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
