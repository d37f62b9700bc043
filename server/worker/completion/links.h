// Tells the daemon by which tokens this session shares memory with others
// (server/protocol/links.h). Thread-safe.
#pragma once

#include <cstddef>
#include <set>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/protocol/links.h"

namespace longwire::worker {

class Links {
 public:
  // The daemon's socket; -1: there is none.
  explicit Links(int control) : control_(control) {}

  void Add(const links::Token& token);
  // A daemon wants to know: all until now, and later ones.
  void Tell();

 private:
  // A program that shares more has long been linked with whom it works with.
  static constexpr size_t kMaxTokens = 4096;
  void Send(const links::Token& token) const;

  const int control_;
  base::Mutex mutex_{base::ranks::kLinks};
  std::set<links::Token> tokens_ LONGWIRE_GUARDED_BY(mutex_);
  bool told_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::worker
