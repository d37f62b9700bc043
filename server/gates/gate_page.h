// One page of shared memory per session: what the daemon allows on each of the session's devices,
// and how busy the session is there. No message passes for either: the worker looks at a gate
// before it issues, the daemon reads the counters whenever somebody asks.
//
// Two bells say that it is time to look: `changes` (a futex, rung by the daemon) and an eventfd
// (rung by the worker, and only where `tell` asks for it, so a session that is alone on its devices
// costs nobody a wake-up).
//
// The worker's half is not trusted: the daemon copies each value out once, and nothing that it
// decides about other sessions' safety rests on it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "wire/socket.h"

namespace longwire::gates {

inline constexpr uint32_t kMaxDevices = 64;  // of one session
inline constexpr uint32_t kMaxCalls = 1024;  // numbers of the description

// Of one device of the session, in the session's order. Times are nanoseconds of the steady clock,
// which all processes of a host share.
struct alignas(64) DeviceGate {
  // The daemon's.
  std::atomic<uint32_t> closed{0};  // 1: nothing new is issued
  // A call may be issued while fewer than these are unfinished, or while the unfinished ones
  // together are estimated to take less time; both 0: no bound.
  std::atomic<uint32_t> budget_calls{0};
  std::atomic<uint32_t> budget_microseconds{0};
  std::atomic<uint32_t> copy_slice_bytes{0};  // copies are cut into pieces of this; 0: whole
  std::atomic<uint32_t> tell{0};  // 1: the bell is rung when it turns busy or running, or ends
  std::atomic<uint32_t> time_slice{0};  // wanted hardware slice, microseconds; 0: the driver's own

  // The worker's.
  alignas(64) std::atomic<uint32_t> busy{0};  // calls wait or run
  std::atomic<uint64_t> running_since{0};     // 0: nothing runs
  std::atomic<uint64_t> gpu_time{0};          // of all that has ended
  std::atomic<uint64_t> calls{0};             // finished calls that ran on the device
  std::atomic<uint64_t> held{0};              // times that a closed gate or a budget held work back
  std::atomic<uint32_t> time_slice_groups{0};  // channel groups that took the slice
};

class GatePage {
 public:
  // The daemon makes the page and hands its two descriptors to the worker. nullptr on failure.
  static std::shared_ptr<GatePage> Create(uint32_t devices);
  // The worker maps what it was handed; nullptr if that is no page of ours.
  static std::shared_ptr<GatePage> Map(wire::Descriptor memory, wire::Descriptor bell);
  ~GatePage();
  GatePage(const GatePage&) = delete;
  GatePage& operator=(const GatePage&) = delete;

  uint32_t devices() const { return devices_; }
  DeviceGate& device(uint32_t index) { return gates_[index]; }
  // Bytes of calls and uploads that the worker may hold, for the session's whole life; the daemon
  // writes it before the worker opens the session. 0: the worker's own default.
  std::atomic<uint64_t>& bytes_in_flight();
  // Bytes of pinned memory that the session may share with its worker, in the same way; 0: none.
  std::atomic<uint64_t>& segment_bytes();
  // How often the session made the call of this number; the worker counts.
  std::atomic<uint64_t>& calls(uint32_t number) { return calls_[number % kMaxCalls]; }

  // After the daemon has changed a gate.
  void RingWorker();
  // Whether the worker has heard all rings. One that never said that it hears counts as having: it
  // is of a version that does not say.
  bool Heard() const;
  // Waits until RingWorker was called since `seen` or the page is closed; the new count. Tells the
  // daemon that `seen` was heard.
  uint32_t WaitForChange(uint32_t seen);
  // Ends all waiting for changes.
  void Close();
  bool closed() const;

  // After the worker has changed `busy`.
  void RingDaemon();
  // Takes the rings so far away, so that the descriptor is quiet again.
  void Answer();

  int memory_descriptor() const { return memory_.get(); }
  int bell_descriptor() const { return bell_.get(); }

 private:
  struct Header;
  GatePage() = default;

  wire::Descriptor memory_;
  wire::Descriptor bell_;
  Header* header_ = nullptr;
  DeviceGate* gates_ = nullptr;
  std::atomic<uint64_t>* calls_ = nullptr;
  uint32_t devices_ = 0;
  std::atomic<bool> closing_{false};
};

// Now, on the clock of the page.
uint64_t Nanoseconds();

// GPU time up to now: of what has ended and of what still runs.
uint64_t GpuTime(const DeviceGate& gate, uint64_t now);

}  // namespace longwire::gates
