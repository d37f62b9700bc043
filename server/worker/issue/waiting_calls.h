// Calls that were read from the log and wait outside the streams' queues: for a helper, for calls
// before them, for memory. Their bytes are counted until they have run, and the log is not read
// further while too many wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "server/worker/support/call_queue.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class WaitingCalls {
 public:
  explicit WaitingCalls(wire::RingMemory& up) : up_(up) {}
  WaitingCalls(const WaitingCalls&) = delete;
  WaitingCalls& operator=(const WaitingCalls&) = delete;

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // The log thread waits until there are fewer.
  void Await(bool awaited) { awaited_ = awaited; }

 private:
  friend class WaitingCall;
  void Ended(uint64_t bytes) {
    bytes_ -= bytes;
    if (awaited_) up_.PokeConsumer();
  }

  wire::RingMemory& up_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<bool> awaited_{false};
};

class WaitingCall {
 public:
  WaitingCall(WaitingCalls& all, QueuedCall call) : all_(&all), call_(std::move(call)) {
    bytes_ = kOverhead + call_.arguments.capacity();
    all_->bytes_ += bytes_;
  }
  WaitingCall(WaitingCall&& other) noexcept { *this = std::move(other); }
  WaitingCall& operator=(WaitingCall&& other) noexcept {
    std::swap(all_, other.all_);
    std::swap(call_, other.call_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~WaitingCall() {
    if (all_ != nullptr) all_->Ended(bytes_);
  }

  QueuedCall& operator*() { return call_; }
  const QueuedCall& operator*() const { return call_; }
  QueuedCall* operator->() { return &call_; }
  const QueuedCall* operator->() const { return &call_; }

 private:
  // The call itself, and what a helper or a queue needs for it.
  static constexpr uint64_t kOverhead = sizeof(QueuedCall) + 160;

  WaitingCalls* all_ = nullptr;
  QueuedCall call_;
  uint64_t bytes_ = 0;
};

}  // namespace longwire::worker
