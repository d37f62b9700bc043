#include "server/worker/completion/gates.h"

#include <algorithm>

#include "longwire/calls.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kStuckAfter = 1'000'000'000;  // nanoseconds
constexpr uint32_t kMeasuredCalls = 16;          // that make one measurement of a call's length

// A gate never holds back what orders other calls (records, waits, host functions): it waits in its
// stream behind gated calls. Nor does it hold back what is captured, which keeps no device at work.
bool IsWork(const QueuedCall& call) {
  return (call.flags & wire::kCapturing) == 0 && IsGated(call.call);
}

}  // namespace

Gates::Gates(size_t devices) : devices_(std::max<size_t>(devices, 1)) {}

void Gates::Obey(std::shared_ptr<gates::GatePage> page, std::function<void()> wake) {
  if (page == nullptr || page->devices() < devices_.size()) return;
  page_ = std::move(page);
  awake_.Follow(&page_->awake(), &page_->awake_spent());
  watcher_ = std::thread([page = page_, wake = std::move(wake)] {
    for (uint32_t seen = 0; !page->closed();) {
      seen = page->WaitForChange(seen);
      wake();
    }
  });
}

void Gates::Stop() {
  if (!watcher_.joinable()) return;
  page_->Close();
  watcher_.join();
}

bool Gates::WithinBudget(const Device& device, const gates::DeviceGate& gate) const {
  auto in_flight = static_cast<uint64_t>(device.in_flight.load());
  uint64_t calls = gate.budget_calls.load();
  uint64_t time = gate.budget_microseconds.load() * uint64_t{1000};
  if (calls == 0 && time == 0) return true;
  // As long as nothing was measured a call may be of any length: one at a time.
  uint64_t mean = device.mean_call.load();
  bool short_enough = mean != 0 && in_flight * mean < time;
  return in_flight < std::max<uint64_t>(calls, 1) || short_enough;
}

bool Gates::IsStuck(Device& device) {
  int64_t in_flight = device.in_flight.load();
  uint64_t now = gates::Nanoseconds();
  if (device.held_since == 0 || in_flight != device.held_in_flight) {
    device.held_in_flight = in_flight;
    device.held_since = now;
  }
  return now - device.held_since >= kStuckAfter;
}

bool Gates::MayIssue(const Stream& stream, const QueuedCall& head) {
  if (page_ == nullptr) return true;
  auto index = static_cast<uint32_t>(stream.context->device);
  gates::DeviceGate& gate = page_->device(index);
  Device& device = devices_[index];
  const uint32_t state = gate.closed.load();
  bool closed = state != gates::kOpen && state != gates::kOneCall;
  bool unbounded = gate.budget_calls.load() == 0 && gate.budget_microseconds.load() == 0;
  // A kernel may wait for a call that the budget holds back: then one more goes.
  bool may = (!closed && (unbounded || WithinBudget(device, gate))) || !IsWork(head) ||
             (!closed && IsStuck(device)) || stream.context->failed != 0;  // it is only dropped
  if (!may && !device.holding) gate.held.fetch_add(1);
  device.holding = !may;
  return may;
}

void Gates::Queued(int32_t device, int64_t calls) {
  Device& state = devices_[device];
  int64_t before = state.queued.load(std::memory_order_relaxed);
  if (before > 0 && calls > 0) {  // it is busy, and known to be
    state.queued.store(before + calls, std::memory_order_release);
    return;
  }
  state.queued.store(before + calls);
  if (calls < 0 || !state.busy.load()) Update(device);
}

void Gates::Issued(int32_t device, int64_t calls) {
  Device& state = devices_[device];
  state.held_since = 0;
  // In this order: between the two the session looks busier than it is, never idle.
  int64_t before = state.in_flight.fetch_add(calls);
  int64_t queued = state.queued.load(std::memory_order_relaxed);
  state.queued.store(queued - calls, std::memory_order_release);
  if (before == 0) Update(device);
}

bool Gates::Enters(int32_t device) {
  Issued(device, 1);  // first: one of the two sees the other
  if (page_ == nullptr) return true;
  std::atomic<uint32_t>& closed = page_->device(static_cast<uint32_t>(device)).closed;
  uint32_t seen = closed.load();
  if (seen == gates::kOpen) return true;
  if (seen == gates::kOneCall && closed.compare_exchange_strong(seen, gates::kCallTaken))
    return true;
  NotIssued(device, 1);
  return false;
}

void Gates::Leaves(int32_t device) {
  NotIssued(device, 1);
  if (page_ == nullptr) return;
  uint32_t taken = gates::kCallTaken;  // unless the daemon has closed it since
  page_->device(static_cast<uint32_t>(device))
      .closed.compare_exchange_strong(taken, gates::kOneCall);
}

void Gates::NotIssued(int32_t device, int64_t calls) {
  Device& state = devices_[device];
  int64_t queued = state.queued.load(std::memory_order_relaxed);
  state.queued.store(queued + calls, std::memory_order_release);
  if (state.in_flight.fetch_sub(calls) == calls) Update(device);
}

void Gates::Finished(int32_t device, uint32_t calls) {
  Device& state = devices_[device];
  if (page_ != nullptr) page_->device(device).calls.fetch_add(calls);
  uint32_t measured = state.finished.fetch_add(calls) + calls;
  // A program that always has something queued has runs without an end.
  bool enough = measured >= kMeasuredCalls;
  if (state.in_flight.fetch_sub(calls) == calls || enough) Update(device);
}

void Gates::Measure(Device& device, uint64_t now) {
  uint32_t calls = device.finished.exchange(0);
  if (calls == 0) return;
  uint64_t mean = (now - device.measured_since) / calls;
  uint64_t before = device.mean_call.load();
  device.mean_call = before == 0 ? mean : (3 * before + mean) / 4;
  device.measured_since = now;
}

void Gates::Update(int32_t index) {
  Device& device = devices_[index];
  base::MutexLock lock(device.mutex);
  bool running = device.in_flight.load() > 0;
  bool busy = running || device.queued.load() > 0;
  gates::DeviceGate* gate = page_ == nullptr ? nullptr : &page_->device(index);
  bool changed = running != device.running.load() || busy != device.busy.load();
  uint64_t now = gates::Nanoseconds();
  if (device.running.load()) Measure(device, now);
  if (running != device.running.load()) {
    device.running = running;
    if (running) device.since = device.measured_since = now;
    if (!running && gate != nullptr) gate->gpu_time.fetch_add(now - device.since);
    if (gate != nullptr) gate->running_since = running ? now : 0;
  }
  device.busy = busy;
  // Who queued something since that look may have found the device busy still.
  if (!busy && device.queued.load() > 0) busy = device.busy = true;
  if (gate == nullptr || !changed) return;
  gate->busy = busy ? 1 : 0;
  if (gate->tell.load() != 0) page_->RingDaemon();
}

}  // namespace longwire::worker
