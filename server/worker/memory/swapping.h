// Swapping on the worker's side: the keeper moves memory of an idle session to host memory. While
// some of it is swapped out, no call that may access memory is read from the log: kernels follow
// pointers, so all memory is swapped in first. The log thread unmaps and maps; it waits for
// nothing.
//
// Only sessions on one device take part, since two sessions that wait for each other's devices
// would deadlock.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/call_ids.h"
#include "server/protocol/swap.h"
#include "server/worker/memory/keeper_client.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class Completion;
class Failures;
class Helpers;
class Memory;
class Timelines;
struct Device;

class Swapping {
 public:
  struct Uses {
    std::vector<Device>& devices;
    Memory& memory;
    Helpers& helpers;
    Timelines& timelines;
    Completion& completion;
    std::function<bool()> log_is_idle;            // LogThread::IsIdle
    std::function<keeper::NextWork()> next_work;  // of the log, from the call on that waits
    Failures& failures;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Swapping(Uses uses) : uses_(std::move(uses)) {}

  // Handles a message of the device's keeper. Any thread.
  void Heard(int32_t device, wire::Message packet);
  void KeeperIsGone(int32_t device);
  // The largest chunk that a session may lease if its memory can be swapped; 0: any size.
  uint64_t largest_chunk() const;

  // Log thread.
  // True if the call must wait until all memory is swapped in, which is then requested.
  bool MustWait(CallId call);
  // Does what the keeper has requested. `works`: the log thread has just had work. True if calls
  // that had to wait may go on.
  bool Step(bool works);
  // True if the keeper waits for the session to become idle.
  bool is_asked() const { return asked_; }
  // The log thread is about to sleep, or has woken.
  void SetResting(bool resting) { resting_ = resting; }

 private:
  using Clock = std::chrono::steady_clock;

  bool TakeBack(wire::Message packet);
  // True if memory came back.
  bool TakePackets();
  void LetGo();
  bool IsIdle() const;
  void Answer(uint64_t request, keeper::SwapAnswer answer);
  KeeperClient& keeper() const;

  Uses uses_;
  std::atomic<bool> watched_{false};
  std::atomic<bool> resting_{false};
  std::atomic<bool> asked_{false};
  std::atomic<bool> heard_{false};
  base::Mutex mutex_{base::ranks::kSwapping};
  std::deque<wire::Message> packets_ LONGWIRE_GUARDED_BY(mutex_);
  bool gone_ LONGWIRE_GUARDED_BY(mutex_) = false;

  // Log thread only.
  keeper::SwapOut ask_;  // while asked_
  Clock::time_point ask_until_{};
  uint64_t back_ = 0;  // the request to swap in; 0: none
  uint64_t requests_ = 0;
  Clock::time_point ran_{};  // when the keeper was last notified that the session works
};

}  // namespace longwire::worker
