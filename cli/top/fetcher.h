// Asks the server in a thread of its own, so that keys are taken while it does not answer.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "cli/connect.h"

namespace longwire::cli::top {

class Asker;

class Fetcher {
 public:
  struct State {
    uint64_t number = 0;                                         // counts up with each change
    std::shared_ptr<const transport::InspectReply> before, now;  // nullptr: not yet
    std::string server;
    std::string problem;   // why the last question got no answer
    uint64_t answers = 0;  // to requests
    std::string said;      // the last of them
  };

  // `also`: what the answers have besides.
  Fetcher(ServerOptions options, std::chrono::duration<double> interval,
          transport::InspectRequest also);
  ~Fetcher();

  // Asks once, in the caller's thread. False with a sentence.
  bool FetchOnce(std::string* sentence);
  // False with a sentence.
  bool Start(std::string* sentence);
  State Get();
  // Has it done, then asks anew.
  void Ask(transport::AdminRequest request);
  // True when the thread is through; it may take seconds until a question is given up.
  bool Stop(std::chrono::milliseconds patience);

 private:
  bool Fetch(std::string* sentence);
  void Administer(const transport::AdminRequest& request);
  void Loop();

  const ServerOptions options_;
  const std::chrono::duration<double> interval_;
  const transport::InspectRequest also_;
  std::unique_ptr<Asker> asker_;  // the thread's own
  std::thread thread_;

  base::Mutex mutex_{base::ranks::kTopFetcher};
  base::CondVar changed_;
  State state_ LONGWIRE_GUARDED_BY(mutex_);
  std::deque<transport::AdminRequest> requests_ LONGWIRE_GUARDED_BY(mutex_);
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = true;
};

}  // namespace longwire::cli::top
