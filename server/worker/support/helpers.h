// Threads for driver calls that can block. Each client thread has its own helper, created at its
// first such call: its calls stay in order, and no client thread waits for another's calls.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {

class Helpers {
 public:
  // Client threads are numbered from 1; these numbers are for work of the worker itself.
  static constexpr uint32_t kMemoryThread = 0xffffffff;  // unmaps, returns, destroys, in order
  static constexpr uint32_t kLoaderThread = 0xfffffffe;  // lazily loaded functions
  static constexpr uint32_t kStagingThread = 0xfffffffd;
  static constexpr uint32_t kLinkerThread = 0xfffffffc;   // all of the driver's linking
  static constexpr uint32_t kMappingThread = 0xfffffffb;  // mappings of new chunks
  static constexpr uint32_t kTextThread = 0xfffffffa;     // sentences for the program
  static constexpr uint32_t kStateThread = 0xfffffff9;    // second contexts of devices
  static constexpr uint32_t kFirstOwn = kStateThread;
  // If there are more client threads, they share helpers.
  static constexpr uint32_t kMaxClientHelpers = 256;

  // `enter` runs first on every helper.
  explicit Helpers(std::function<void()> enter) : enter_(std::move(enter)) {}
  ~Helpers() { Stop(); }

  // Runs `work` on the helper of this thread, after its earlier work.
  void Post(uint32_t thread, std::function<void()> work);
  // True if no work runs or waits.
  bool idle() const { return pending_ == 0; }
  // True if work of this thread runs or waits.
  bool IsBusy(uint32_t thread);
  // Finishes running work and drops waiting work.
  void Stop();

 private:
  struct Helper {
    base::Mutex mutex{base::ranks::kHelper};
    base::CondVar changed;
    std::deque<std::function<void()>> work LONGWIRE_GUARDED_BY(mutex);
    size_t pending LONGWIRE_GUARDED_BY(mutex) = 0;  // with what runs
    bool stop LONGWIRE_GUARDED_BY(mutex) = false;
    std::thread thread;
  };
  void Run(Helper& helper);

  std::function<void()> enter_;
  base::Mutex mutex_{base::ranks::kHelpers};
  std::map<uint32_t, std::unique_ptr<Helper>> helpers_ LONGWIRE_GUARDED_BY(mutex_);
  bool stopped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> pending_{0};
};

}  // namespace longwire::worker
