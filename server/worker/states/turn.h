// What the worker has on one device to store and take whole states (state_turns.h).
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "server/worker/memory/charges.h"
#include "server/worker/states/device_shadows.h"
#include "server/worker/support/host_memory.h"

namespace longwire::worker {

inline constexpr unsigned kTurnThreads = 256;  // of a block of the kernels
// Where there was no room it is tried again after this time.
inline constexpr std::chrono::seconds kTurnRetry{60};

struct DeviceTurn {
  using Clock = std::chrono::steady_clock;

  int32_t device = 0;
  CUcontext context = nullptr;
  CUfunction store = nullptr, take = nullptr, patch = nullptr, compare = nullptr;
  CUstream stream = nullptr;
  CUevent after = nullptr;
  CUdeviceptr data = 0;
  std::byte* staged = nullptr;  // pinned, as large as `data`
  uint64_t bytes = 0;
  Charge context_charge, data_charge;
  HostMemory::Share share;

  // A helper makes it, or something larger.
  std::atomic<bool> is_made{false};
  // From Store or Take until Free. `expected`: words.
  std::atomic<bool> busy{false};
  uint64_t expected = 0;
  // Written by the helper, read by the log thread while nothing is made.
  bool refused = false, said = false;
  Clock::time_point refused_at{};
  std::atomic<bool> broken{false};

  // The same of memory for shadows. `any_shadows`: there may be some.
  std::unique_ptr<DeviceShadows> shadows;
  bool no_shadows = false, said_shadows = false;
  Clock::time_point no_shadows_at{};
  std::atomic<bool> any_shadows{false};
};

}  // namespace longwire::worker
