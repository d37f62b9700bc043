// Which sessions have said the same token (server/protocol/links.h). A worker is not trusted: it
// can link its session with others of its own tenant alone. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/protocol/links.h"

namespace longwire::daemon {

class LinkedSessions {
 public:
  static constexpr size_t kMaxTokens = 4096;  // of one session

  // Another session of the tenant that has said this token before, if there is one.
  std::optional<uint64_t> Said(uint64_t session, const std::string& tenant,
                               const links::Token& token);
  void Ended(uint64_t session);

 private:
  using Key = std::pair<std::string, links::Token>;  // of a tenant

  base::Mutex mutex_{base::ranks::kLinkedSessions};
  std::map<Key, uint64_t> first_ LONGWIRE_GUARDED_BY(mutex_);      // who said it
  std::map<uint64_t, size_t> tokens_ LONGWIRE_GUARDED_BY(mutex_);  // of a session in first_
};

}  // namespace longwire::daemon
