// The session's memory that the keeper moves to the host's, on the worker's side. While some of it
// is away nothing is read from the log that might touch memory: kernels follow pointers, so all of
// it comes back first. The log thread lets go and takes back; it waits for nothing.
//
// Only sessions on one device take part: two that wait for each other's devices would wait for
// ever.
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
#include "server/keeper/swap_protocol.h"
#include "server/worker/memory/keeper_client.h"
#include "wire/ring.h"

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
    std::function<bool()> log_is_idle;  // LogThread::IsIdle
    Failures& failures;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Swapping(Uses uses) : uses_(std::move(uses)) {}

  // Any thread: a message of the device's keeper.
  void Heard(int32_t device, wire::Message packet);
  void KeeperIsGone(int32_t device);
  // The keeper moves memory: sessions that take part are to have it in pieces of this size at most;
  // 0: any.
  uint64_t largest_chunk() const;

  // Log thread.
  // True if the call has to wait until all memory is here, which is asked for then.
  bool MustWait(CallId call);
  // Does what the keeper has asked for. `works`: the log thread has just had something to do. True:
  // what had to wait may go on.
  bool Step(bool works);
  // The keeper waits for the session to become idle.
  bool is_asked() const { return asked_; }
  // The log thread is about to sleep, or awake.
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
  uint64_t back_ = 0;  // the request for what is away, 0: none
  uint64_t requests_ = 0;
  Clock::time_point ran_{};  // when the keeper was last notified that the session works
};

}  // namespace longwire::worker
