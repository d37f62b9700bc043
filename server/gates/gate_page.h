// One page of shared memory for each session: what the daemon allows on each of the session's
// devices, and the session's activity there. No messages are needed: the worker reads a gate before
// it issues, the daemon reads the counters when it needs them.
//
// Two notifications announce changes: a futex, `changes`, for the worker, and an eventfd for the
// daemon. The worker signals the eventfd only where `tell` is set, so a session that is alone on
// its devices causes no wake-up.
//
// The worker's half is not trusted: the daemon copies each value once, and decisions about the
// safety of other sessions do not depend on it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "server/gates/latency.h"
#include "wire/socket.h"

namespace longwire::gates {

inline constexpr uint32_t kMaxDevices = 64;  // of one session
inline constexpr uint32_t kMaxCalls = 960;   // numbers of the description

inline constexpr uint32_t kOpen = 0, kClosed = 1, kOneCall = 2, kCallTaken = 3;

// Of one device of the session, in the session's order. Times are nanoseconds of the steady clock,
// which all processes of a host share.
struct alignas(64) DeviceGate {
  // Written by the daemon.
  // kOpen; kClosed: nothing new is issued; kOneCall: one more kernel is, and the worker writes
  // kCallTaken. A worker of an earlier release takes all but kOpen for closed.
  std::atomic<uint32_t> closed{kOpen};
  // A call may be issued while fewer than these are unfinished, or while the unfinished ones
  // together are estimated to take less time; both 0: no bound.
  std::atomic<uint32_t> budget_calls{0};
  std::atomic<uint32_t> budget_microseconds{0};
  std::atomic<uint32_t> copy_slice_bytes{0};  // copies are cut into pieces of this; 0: whole
  std::atomic<uint32_t> tell{
      0};  // 1: signal the daemon when the session becomes busy, running or idle
  std::atomic<uint32_t> time_slice{0};  // requested hardware time slice, microseconds; 0: default

  // Written by the worker.
  alignas(64) std::atomic<uint32_t> busy{0};   // 1: calls wait or run
  std::atomic<uint64_t> running_since{0};      // 0: no work is running
  std::atomic<uint64_t> gpu_time{0};           // of completed work
  std::atomic<uint64_t> calls{0};              // finished calls that ran on the device
  std::atomic<uint64_t> held{0};               // times that a closed gate or a budget delayed work
  std::atomic<uint32_t> time_slice_groups{0};  // channel groups that accepted the time slice
};

class GatePage {
 public:
  // The daemon creates the page and passes its two descriptors to the worker. nullptr on failure.
  static std::shared_ptr<GatePage> Create(uint32_t devices);
  // The worker maps the page; nullptr if the descriptors are no gate page.
  static std::shared_ptr<GatePage> Map(wire::Descriptor memory, wire::Descriptor bell);
  ~GatePage();
  GatePage(const GatePage&) = delete;
  GatePage& operator=(const GatePage&) = delete;

  uint32_t devices() const { return devices_; }
  DeviceGate& device(uint32_t index) { return gates_[index]; }
  // Bytes of calls and uploads that the worker may hold, for the session's whole life; the daemon
  // writes it before the worker opens the session. 0: the worker's own default.
  std::atomic<uint64_t>& bytes_in_flight();
  // Bytes of pinned memory that the session may share with its worker, likewise; 0: none.
  std::atomic<uint64_t>& segment_bytes();
  // 1: a packet with rules (server/rules/rule.h) follows the opening, likewise.
  std::atomic<uint32_t>& has_rules();
  // 1: behind it, a packet with the session's statistics (server/statistics/page.h), likewise.
  std::atomic<uint32_t>& has_statistics();
  // The number of the policy that the worker asks about launches (server/rules/launches.h), as the
  // worker says; 0: none, or the worker is of an earlier release.
  std::atomic<uint64_t>& launch_policy();
  // How long the worker's threads stay awake after the session's last message, in nanoseconds; the
  // daemon writes it at any time. 0: they sleep.
  std::atomic<uint64_t>& awake();
  // The processor time, in nanoseconds, that this has cost; the worker counts.
  std::atomic<uint64_t>& awake_spent();
  // How often the session made the call of this number; the worker counts.
  std::atomic<uint64_t>& calls(uint32_t number) { return calls_[number % kMaxCalls]; }

  // The worker counts one; the daemon reads.
  void Count(Latency latency, uint64_t nanoseconds);
  LatencyCounts Counts(Latency latency) const;
  void AddLatencies(AllLatencies* sums) const;

  // Wakes the worker after the daemon has changed a gate.
  void RingWorker();
  // True if the worker has seen all changes. A worker that never acknowledged any counts as having
  // seen all: its version does not acknowledge.
  bool Heard() const;
  // Waits until RingWorker was called after `seen`, or the page is closed; returns the new count.
  // Acknowledges `seen` to the daemon.
  uint32_t WaitForChange(uint32_t seen);
  // Ends all waiting for changes.
  void Close();
  bool closed() const;

  // Wakes the daemon after the worker has changed `busy`.
  void RingDaemon();
  // Clears pending wake-ups of the daemon's descriptor.
  void Answer();

  // For a daemon that takes the session over: every gate is open and nothing is limited.
  void OpenAll();

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

// The present time on the page's clock.
uint64_t Nanoseconds();

// GPU time up to now, of completed and of running work.
uint64_t GpuTime(const DeviceGate& gate, uint64_t now);

}  // namespace longwire::gates
