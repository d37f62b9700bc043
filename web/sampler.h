// Asks the daemon every second, in a thread of its own, and keeps what it said. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "web/daemon_client.h"
#include "web/events.h"
#include "web/history.h"
#include "web/latencies.h"

namespace longwire::web {

class Sampler {
 public:
  using Reply = std::shared_ptr<const transport::InspectReply>;
  struct State {
    Reply before, now;    // nullptr: not yet. `before` is of the same daemon, or nullptr
    double answered = 0;  // when `now` came, seconds since 1970
    std::string problem;  // why the last question got no answer
  };

  explicit Sampler(const DaemonClient& daemon) : daemon_(daemon) {}
  ~Sampler() { Stop(); }

  // False with a sentence.
  bool Start(std::string* sentence);
  void Stop();

  // What Start's thread does with each answer; for tests, too.
  void Take(double seconds, Reply reply);
  void Fail(double seconds, const std::string& problem);

  // Another one in each process: events are counted anew.
  int64_t run() const { return run_; }
  State Get();
  // Somebody looks: for some seconds the answers have the server's pool, too, which etcd is asked
  // for.
  void WantPool();
  std::vector<LatencyRow> Latencies();
  // Events after that number which the caller may see, the newest `most` of them.
  std::vector<Event> EventsAfter(uint64_t number, size_t most, const History::MaySee& may_see);
  // Calls it with the history, which does not change meanwhile.
  void WithHistory(const std::function<void(const History&)>& read);

 private:
  void Loop();
  void Ask();

  const DaemonClient& daemon_;
  const int64_t run_ = std::chrono::system_clock::now().time_since_epoch().count();
  std::thread thread_;
  base::Mutex mutex_{base::ranks::kWebSampler};
  base::CondVar changed_;
  std::chrono::steady_clock::time_point pool_until_ LONGWIRE_GUARDED_BY(mutex_){};
  bool stopping_ LONGWIRE_GUARDED_BY(mutex_) = false;
  State state_ LONGWIRE_GUARDED_BY(mutex_);
  History history_ LONGWIRE_GUARDED_BY(mutex_);
  Events events_ LONGWIRE_GUARDED_BY(mutex_);
  web::Latencies latencies_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::web
