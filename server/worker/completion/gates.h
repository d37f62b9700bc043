// The session's gates on the worker's side: decides which queued calls may be issued, and reports
// the session's work (server/gates/gate_page.h). Without a page every call may be issued.
//
// The log thread checks the gates and counts the calls that it queues and issues; the completion
// thread counts finished calls. Transitions between idle and busy are made under a lock per device,
// everything else is an atomic counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/gates/gate_page.h"
#include "server/worker/support/objects.h"
#include "wire/rings/awake.h"

namespace longwire::worker {

class Gates {
 public:
  explicit Gates(size_t devices);
  ~Gates() { Stop(); }

  // Follows the page from now on. Called before the first record. `wake` is called when a gate
  // changed.
  void Obey(std::shared_ptr<gates::GatePage> page, std::function<void()> wake);
  void Stop();
  // Whether the session's threads stay awake between its messages.
  wire::Awake& awake() { return awake_; }

  // Log thread.
  void CountCall(CallId call, uint64_t times = 1) {
    if (page_ == nullptr) return;
    std::atomic<uint64_t>& count = page_->calls(static_cast<uint32_t>(call));
    count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
  }
  // Any thread.
  void Count(gates::Latency latency, uint64_t nanoseconds) {
    if (page_ != nullptr) page_->Count(latency, nanoseconds);
  }
  // True if every call may be issued: the gate is open and there is no budget.
  bool IsWideOpen(int32_t device) const {
    if (page_ == nullptr) return true;
    gates::DeviceGate& gate = page_->device(static_cast<uint32_t>(device));
    return gate.closed.load() == 0 && gate.budget_calls.load() == 0 &&
           gate.budget_microseconds.load() == 0;
  }
  // True if turns and budgets allow this call to be issued.
  bool MayIssue(const Stream& stream, const QueuedCall& head);
  void Queued(int32_t device, int64_t calls);  // negative: left the queue without being issued
  void Issued(int32_t device, int64_t calls);  // they leave the queue
  // Issued for a kernel or graph that is about to go to the driver. False, and nothing is counted,
  // if the gate closed since MayIssue: whoever closed it and found nothing running gives the device
  // to others, beside whom what waits for another device's kernels would never end.
  bool Enters(int32_t device);
  // It was not given to the driver, and comes again.
  void Leaves(int32_t device);
  // Undoes Issued: the calls are back at the queue's head.
  void NotIssued(int32_t device, int64_t calls);

  // Completion thread.
  void Finished(int32_t device, uint32_t calls);

 private:
  struct alignas(64) Device {
    std::atomic<int64_t> queued{0};      // log thread writes
    std::atomic<int64_t> in_flight{0};   // both add
    std::atomic<bool> running{false};    // changed under mutex
    std::atomic<bool> busy{false};       // changed under mutex
    std::atomic<uint64_t> mean_call{0};  // recent mean, nanoseconds
    base::Mutex mutex{base::ranks::kGateDevice};
    uint64_t since LONGWIRE_GUARDED_BY(mutex) = 0;           // of this run
    uint64_t measured_since LONGWIRE_GUARDED_BY(mutex) = 0;  // of `finished`
    std::atomic<uint32_t> finished{0};                       // calls since the last measurement
    // Log thread only:
    bool holding = false;        // the last MayIssue returned false
    int64_t held_in_flight = 0;  // calls in flight at that time
    uint64_t held_since = 0;     // since when no call finished or was issued; 0: not held
  };

  void Update(int32_t device);
  static void Measure(Device& device, uint64_t now) LONGWIRE_REQUIRES(device.mutex);
  bool WithinBudget(const Device& device, const gates::DeviceGate& gate) const;
  // True if the budget holds work back and no call has finished for long.
  static bool IsStuck(Device& device);

  std::vector<Device> devices_;
  std::shared_ptr<gates::GatePage> page_;
  wire::Awake awake_;
  std::thread watcher_;
};

}  // namespace longwire::worker
