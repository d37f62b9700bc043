// The session's gates, on the worker's side: which heads of queues may be issued, and what the
// session reports about its work (server/gates/gate_page.h). Without a page everything may be
// issued.
//
// The log thread asks and counts what it queues and issues; the completion thread counts what has
// finished. Transitions between idle and busy are made under one lock, everything else is a
// counter.
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

namespace longwire::worker {

class Gates {
 public:
  explicit Gates(size_t devices);
  ~Gates() { Stop(); }

  // Obeys the page from now on; before the first record. `wake` is called when a gate changed.
  void Obey(std::shared_ptr<gates::GatePage> page, std::function<void()> wake);
  void Stop();

  // Log thread.
  void CountCall(CallId call, uint64_t times = 1) {
    if (page_ == nullptr) return;
    std::atomic<uint64_t>& count = page_->calls(static_cast<uint32_t>(call));
    count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
  }
  // Everything may be issued: there are no turns now, and no budget.
  bool IsWideOpen(int32_t device) const {
    if (page_ == nullptr) return true;
    gates::DeviceGate& gate = page_->device(static_cast<uint32_t>(device));
    return gate.closed.load() == 0 && gate.budget_calls.load() == 0 &&
           gate.budget_microseconds.load() == 0;
  }
  // May this call be issued, as far as turns and budgets go?
  bool MayIssue(const Stream& stream, const QueuedCall& head);
  void Queued(int32_t device, int64_t calls);     // negative: left the queue without being issued
  void Issued(int32_t device, int64_t calls);     // they leave the queue
  void NotIssued(int32_t device, int64_t calls);  // after all; they are back at its head

  // Completion thread.
  void Finished(int32_t device, uint32_t calls);

 private:
  struct alignas(64) Device {
    std::atomic<int64_t> queued{0};      // log thread writes
    std::atomic<int64_t> in_flight{0};   // both add
    std::atomic<bool> running{false};    // changed under mutex
    std::atomic<bool> busy{false};       // changed under mutex
    std::atomic<uint64_t> mean_call{0};  // nanoseconds, of late
    base::Mutex mutex{base::ranks::kGateDevice};
    uint64_t since LONGWIRE_GUARDED_BY(mutex) = 0;           // of this run
    uint64_t measured_since LONGWIRE_GUARDED_BY(mutex) = 0;  // of `finished`
    std::atomic<uint32_t> finished{0};                       // calls since the last measurement
    bool holding = false;                                    // log thread: the last answer was no
    int64_t held_in_flight = 0;  // log thread: how much was in flight then
    uint64_t held_since = 0;     // log thread: nothing finished or went since; 0: not held
  };

  void Update(int32_t device);
  static void Measure(Device& device, uint64_t now) LONGWIRE_REQUIRES(device.mutex);
  bool WithinBudget(const Device& device, const gates::DeviceGate& gate) const;
  // The budget holds work back, and nothing has finished for long.
  static bool IsStuck(Device& device);

  std::vector<Device> devices_;
  std::shared_ptr<gates::GatePage> page_;
  std::thread watcher_;
};

}  // namespace longwire::worker
