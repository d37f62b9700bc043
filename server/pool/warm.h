// Which programs a host has the code of: images of modules by content, those that lie in its cache,
// and which ones a program has used. Of the newest only, and short: it goes into etcd.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "scheduler/pool/pool.h"
#include "server/etcd/mirror.h"
#include "server/pool/records.pb.h"

namespace longwire::pool {

// A tenant's image, short; `digest`: in hexadecimal. Other tenants do not have it by that.
std::string ImageName(const std::string& tenant, std::string_view digest);
// A tenant's program, short.
std::string ProgramName(const std::string& tenant, const std::string& program);

// What the programs of this host have used. Thread-safe.
class UsedImages {
 public:
  static constexpr size_t kPrograms = 64;
  static constexpr size_t kImages = 16;  // of one program: its newest

  void Used(const std::string& program, const std::string& image);
  static constexpr size_t kCached = 256;
  // With the first kCached of `cached`.
  Warm Record(const std::vector<std::string>& cached) const;

 private:
  mutable base::Mutex mutex_{base::ranks::kUsedImages};
  std::map<std::string, std::deque<std::string>> images_ LONGWIRE_GUARDED_BY(mutex_);
  std::deque<std::string> programs_ LONGWIRE_GUARDED_BY(mutex_);  // the newest first
};

// What the placer knows of all hosts. It remembers what programs used, also when no host says it
// any more. Not thread-safe.
class WarmHosts {
 public:
  // Reads the records that have changed.
  void Look(const etcd::Mirror::Keys& keys);
  void Fill(scheduler::pool::HostState* host) const;
  void Fill(scheduler::pool::Wish* wish) const;
  void Clear() { hosts_.clear(); }

 private:
  struct OfHost {
    int64_t changed = 0;  // revision of its record
    std::set<std::string> images;
    bool seen = false;
  };
  std::map<std::string, OfHost> hosts_;
  std::map<std::string, std::vector<std::string>> programs_;
};

}  // namespace longwire::pool
