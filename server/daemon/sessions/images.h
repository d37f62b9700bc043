// Hears the workers of all sessions: answers them about images from one store, each for its
// session's tenant, and passes on with whom they share memory and what they ask about bridges.
// Workers are not trusted: the tenant comes from the session, and digests are computed here.
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/log.h"
#include "server/images/image_store.h"
#include "server/protocol/bridges.h"
#include "server/protocol/images.h"
#include "server/protocol/links.h"
#include "server/rules/launches.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Images {
 public:
  // Nothing is cached without a folder, or, with a line in the log, if it cannot be used.
  // `linked` is called when a session's worker says that it shares memory under a token.
  using OnLinked =
      std::function<void(uint64_t session, const std::string& tenant, const links::Token& token)>;
  // `asked` is called when a worker asks for something about bridges.
  using OnAsked = std::function<void(uint64_t session, const bridges::Ask& ask)>;
  explicit Images(const images::ImageStore::Options& options, OnLinked linked = {},
                  OnAsked asked = {});
  ~Images();

  // Called with each image that a program asks for. Before the first Serve.
  using OnUsed = std::function<void(const std::string& tenant, const std::string& program,
                                    const std::string& digest)>;
  void TellUsed(OnUsed used) { used_ = std::move(used); }
  // Called for what a worker asks about a function, likewise.
  using OnLaunch = std::function<launches::LaunchAnswer(uint64_t session, const std::string& tenant,
                                                        const launches::AskLaunch& ask)>;
  void AnswerLaunches(OnLaunch launch) { launch_ = std::move(launch); }
  // Answers a worker over `control` until the worker closes its end. What it sent before is still
  // stored. Returns why it cannot, else nothing.
  std::string Serve(uint64_t session, const std::string& tenant, const std::string& program,
                    wire::Descriptor control);
  // As ImageStore::Newest; none when nothing is cached.
  std::vector<std::pair<std::string, wire::Digest>> Newest(size_t most);

  // All zero when nothing is cached.
  images::Figures figures() { return store_ == nullptr ? images::Figures{} : store_->figures(); }

 private:
  struct Worker {
    uint64_t session = 0;
    std::string tenant, program;
    wire::Descriptor control;
    std::atomic<bool> gone{false};
    std::thread thread;
  };
  void Run(Worker& worker);
  // False: the worker violated the protocol.
  bool Answer(Worker& worker, const wire::Message& message);
  bool Answer(Worker& worker, const images::Find& find);
  void TakeIn(Worker& worker, const images::Keep& keep, const wire::Descriptor& memory);

  const OnLinked linked_;
  const OnAsked asked_;
  OnUsed used_;
  OnLaunch launch_;
  std::unique_ptr<images::ImageStore> store_;
  std::atomic<size_t> logged_{0};  // the hash of why the last image was not cached
  wire::Descriptor stop_;          // readable: the threads end
  base::Mutex mutex_{base::ranks::kImages};
  std::list<Worker> workers_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
