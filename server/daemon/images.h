// The daemon's side of the cache of module images: answers the workers of all sessions out of one
// store, each for the tenant that its session belongs to. Workers are not believed: the tenant is
// the session's, and digests are counted here. Thread-safe.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/log.h"
#include "server/images/image_store.h"
#include "server/images/protocol.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Images {
 public:
  // Without a folder nothing is kept; nor, with a line in the log, when it cannot be used.
  explicit Images(const images::ImageStore::Options& options);
  ~Images();

  // Answers a worker from now on until its end of the socket is closed; `control` is a socket of
  // its own. What the worker has sent before it ended is still taken in.
  void Serve(uint64_t session, const std::string& tenant, wire::Descriptor control);

  // All zero when nothing is kept.
  images::Figures figures() { return store_ == nullptr ? images::Figures{} : store_->figures(); }

 private:
  struct Worker {
    uint64_t session = 0;
    std::string tenant;
    wire::Descriptor control;
    std::atomic<bool> gone{false};
    std::thread thread;
  };
  void Run(Worker& worker);
  // False: the worker breaks the protocol.
  bool Answer(Worker& worker, const wire::Message& message);
  bool Answer(Worker& worker, const images::Find& find);
  void TakeIn(Worker& worker, const images::Keep& keep, const wire::Descriptor& memory);

  std::unique_ptr<images::ImageStore> store_;
  std::atomic<bool> told_no_room_{false};
  std::atomic<bool> stopping_{false};
  base::Mutex mutex_{base::ranks::kImages};
  std::list<Worker> workers_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
