// On the device, copies of the worker's shadows of mirrors (memory/mirrors.h): a kernel finds what
// the device has changed by them, so only changes come to the host. They follow the worker's
// shadows by pages, each time before they are compared (ChangedPages).
//
// Blocks are 64 bytes and begin at multiples of that in the mirror's memory: the first and the last
// one of a mirror may have bytes of others, which count for nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/memory/charges.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

struct Mirror;

inline constexpr uint64_t kBlockBytes = 64;

// As kernels have it (compare_kernels.h).
struct BlockEntry {
  uint64_t address = 0;
  std::array<std::byte, kBlockBytes> bytes = {};
};
static_assert(sizeof(BlockEntry) == 72);

// One mirror's. Zeros at first.
struct DeviceShadow {
  uint64_t address = 0;  // of the mirror's first block; 0: it is gone
  bool fresh = true;     // until the completion thread knows of it
};

// Helper thread, with the second context current.
class DeviceShadows {
 public:
  DeviceShadows(const DriverTable& driver, Charges& charges, int32_t device)
      : driver_(driver), charges_(charges), device_(device) {}

  static bool HasOne(const Mirror& mirror);
  // Gives one to each mirror that has none, for work of the stream. What is charged is given back
  // with the mirrors.
  CUresult Provide(std::span<const std::shared_ptr<Mirror>> mirrors, CUstream stream);
  // Frees those whose mirrors have ended. True if there are others.
  bool Sweep();
  void FreeAll();

 private:
  struct Slab {
    CUdeviceptr data = 0;
    uint64_t bytes = 0;
    Charge charge;
    std::vector<std::shared_ptr<DeviceShadow>> shadows;
  };
  void Free(Slab& slab);
  CUresult Allocate(std::span<const std::shared_ptr<Mirror>> mirrors, CUstream stream);

  const DriverTable& driver_;
  Charges& charges_;
  const int32_t device_;
  std::vector<Slab> slabs_;
};

}  // namespace longwire::worker
