// A link at run time: the driver's state and what has to live as long.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "server/worker/driver.h"
#include "server/worker/jit_options.h"

namespace longwire::worker {

struct Linker {
  Linker(const DriverTable& table, const std::vector<uint32_t>& option,
         const std::vector<uint64_t>& value)
      : driver(table), options(option, value) {}
  ~Linker() {
    if (state != nullptr) driver.cuLinkDestroy(state);
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  const DriverTable& driver;
  std::mutex mutex;    // one call of the driver at a time
  JitOptions options;  // the driver writes into its logs up to the end
  CUlinkState state = nullptr;
  std::span<const std::byte> image;  // the state's own memory
};

}  // namespace longwire::worker
