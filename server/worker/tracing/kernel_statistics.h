// What each kernel of the session does, counted in memory that the daemon reads
// (server/statistics/page.h): launches all, times of some. A launch that is to be timed leaves the
// row of its stream (LaunchRun) and goes with an event on either side; so the others cost a look at
// their kernel's count, and nothing but a branch where nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/calls.h"
#include "server/statistics/page.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"
#include "server/worker/tracing/spans.h"
#include "server/worker/tracing/timed_pace.h"

namespace longwire::worker {

// A kernel with one block and shared memory.
struct CountedKernel {
  statistics::KernelSlot* slot = nullptr;  // null: it is summed up with others, and never timed
  uint32_t block[3] = {};
  uint32_t shared_bytes = 0;
  uint64_t next_timed = 0;  // the number of its next launch that is timed

  bool due() const {
    return slot != nullptr && slot->launches.load(std::memory_order_relaxed) >= next_timed;
  }
  bool Fits(const calls::lwLaunch& call) const {
    return block[0] == call.block_x && block[1] == call.block_y && block[2] == call.block_z &&
           shared_bytes == call.shared_bytes;
  }
};

// Log thread only, but for Take.
class KernelStatistics {
 public:
  struct Uses {
    const DriverTable& driver;
    const HandleTable<Function>& functions;
    Spans& spans;
  };
  explicit KernelStatistics(Uses uses) : uses_(uses) {}

  // Counts into this page from now on; null: nowhere. Any thread.
  void Take(std::shared_ptr<statistics::Page> page);
  // To be called before `on` and Counted: takes over what Take has left.
  bool Follow() {
    if (version_.load(std::memory_order_acquire) != followed_) [[unlikely]]
      Switch();
    return on();
  }
  bool on() const { return kernels_; }

  // The function's kernel with the launch's block, if it was counted before; else null.
  static CountedKernel* Counted(const Function& function, const calls::lwLaunch& call) {
    for (CountedKernel* kernel : function.counted) {
      if (kernel->Fits(call)) return kernel;
    }
    return nullptr;
  }
  // These were launched in the stream, which was late for them.
  void Count(const Stream& stream, bool late, std::span<CountedKernel* const> kernels);
  // Whether the stream's last launch has ended, with no other call of it behind that.
  static bool IsLate(const Stream& stream) {
    return stream.in_a_row != 0 && stream.unfinished.load(std::memory_order_relaxed) == 0;
  }
  // The launch at this position was read from the log just now, and will be timed.
  void ReadNow(uint64_t position) {
    read_position_ = position;
    read_ = Spans::Now();
  }

  // Around one launch, in a stream whose issue_mutex is held and whose context is current.
  class Launch {
   public:
    Launch(KernelStatistics& statistics, Stream& stream, Function& function,
           const calls::lwLaunch& call, CUfunction handle, uint64_t position);
    void Ends(bool launched);

   private:
    KernelStatistics& statistics_;
    Stream& stream_;
    const uint64_t blocks_;
    const bool late_;
    CountedKernel* kernel_ = nullptr;
    Spans::Place begin_;
    uint64_t read_ = 0;  // 0: not known
  };

  // Something else of the session.
  void Count(statistics::Count of, uint64_t more = 1) {
    if (page_ != nullptr) statistics::Add(page_->count(of), more);
  }
  void CountCopy(bool up, bool pinned, uint64_t bytes);

 private:
  struct Key {
    std::string module;
    std::string name;
    uint32_t block[3];
    uint32_t shared_bytes;
    auto operator<=>(const Key&) const = default;
  };

  void Switch();
  CountedKernel* Find(Function& function, const calls::lwLaunch& call, CUfunction handle,
                      const Context& context);
  void Describe(const Function& function, const calls::lwLaunch& call, CUfunction handle,
                const Context& context, statistics::KernelSlot* slot) const;
  void CountStream(const Stream& stream, bool late, size_t launches);
  void SetNextTimed(CountedKernel* kernel);

  const Uses uses_;
  std::atomic<uint32_t> version_{0};
  uint32_t followed_ = 0;
  bool kernels_ = false;
  std::shared_ptr<statistics::Page> page_;
  std::map<Key, std::unique_ptr<CountedKernel>> kernels_by_key_;
  uint32_t slots_ = 0;
  TimedPace pace_;
  uint64_t read_position_ = UINT64_MAX;
  uint64_t read_ = 0;
  // Of launches: the stream before, and whether several were used.
  uint64_t last_stream_ = 0;
  StreamKind last_kind_ = StreamKind::kBlocking;
  bool several_streams_ = false;

  base::Mutex mutex_{base::ranks::kKernelStatistics};
  std::shared_ptr<statistics::Page> next_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
