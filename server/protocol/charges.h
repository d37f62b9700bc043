// The packets of keeper and worker for device memory that is not leased: arrays, pools, graphs,
// variables of modules, stacks and heaps, which the driver allocates in the worker's own process.
// The worker asks before it calls the driver (docs/memory.md):
//   Charge -> Charged, or Refuse as for a lease
//   Uncharge -> no answer. The driver has freed the memory before, or was never asked.
// From version 14 on; a worker does not charge with an older keeper.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::keeper {

inline constexpr uint32_t kChargesSince = 14;  // version of the protocol

struct Charge {
  static constexpr uint32_t kKind = 119;
  uint64_t request = 0;
  uint64_t bytes = 0;
  uint64_t most = 0;  // may be charged at once, if the tenant has no limit
  auto Fields() { return std::tie(request, bytes, most); }
};

struct Charged {
  static constexpr uint32_t kKind = 120;
  uint64_t request = 0;
  uint64_t bytes = 0;  // from Charge::bytes to Charge::most
  auto Fields() { return std::tie(request, bytes); }
};

struct Uncharge {
  static constexpr uint32_t kKind = 121;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(bytes); }
};

// Keeper to warden, as a part of its state.
struct WorkerCharge {
  uint64_t worker = 0;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(worker, bytes); }
};

struct KeeperCharges {
  // Bytes of the device that are neither in chunks nor charged: contexts, the driver's own, other
  // processes.
  uint64_t others = 0;
  std::vector<WorkerCharge> workers;
  auto Fields() { return std::tie(others, workers); }
};

}  // namespace longwire::keeper
