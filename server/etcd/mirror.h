// The keys that begin with a prefix, kept up to date by a watch on a thread of its own. Watches are
// hints: they can lose events, so everything is read anew now and then, and who changes something
// compares revisions. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/etcd/client.h"

namespace longwire::etcd {

class Mirror {
 public:
  using Keys = std::map<std::string, pb::KeyValue>;

  // `changed` is called by the mirror's thread after each change, without a lock.
  Mirror(Client& client, std::string prefix, std::function<void()> changed)
      : client_(client), prefix_(std::move(prefix)), changed_(std::move(changed)) {}
  ~Mirror() { Stop(); }

  // False with a sentence where the system starts no thread.
  bool Start(std::string* sentence);
  void Stop();

  // All keys, as far as they are known; false before the first reading.
  bool Get(Keys* keys);
  // The same without a copy: `look` is called under the mirror's lock.
  bool Look(const std::function<void(const Keys&)>& look);
  // Reads all now: what was there before the call is in it. False with a sentence.
  bool Refresh(std::string* sentence);
  // What a transaction of the caller's own has changed, before the watch says so. Its comparisons
  // have to be such that no earlier change of these keys is still to come.
  void Apply(const pb::TxnRequest& done, int64_t revision);
  // Waits for a change after the last call, until `deadline` at most.
  void Wait(std::chrono::steady_clock::time_point deadline);
  // Ends the present and the next Wait at once.
  void Wake();

 private:
  void Loop();
  void Take(const pb::WatchResponse& message);
  void Changed();

  Client& client_;
  const std::string prefix_;
  const std::function<void()> changed_;
  std::atomic<bool> stop_{false};
  std::thread thread_;

  base::Mutex mutex_{base::ranks::kEtcdMirror};
  base::CondVar change_;
  Keys keys_ LONGWIRE_GUARDED_BY(mutex_);
  int64_t revision_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // up to which keys_ is true; 0: not read
  bool fresh_ LONGWIRE_GUARDED_BY(mutex_) = false;    // changed since the last Wait
};

}  // namespace longwire::etcd
