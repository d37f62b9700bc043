// Stream-ordered allocation's pools. They hold settings only: memory comes from the device at the
// call and goes back when the stream reaches the free.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

struct MemoryPool {
  int device = 0;
  std::atomic<uint64_t> attributes[16] = {};
};

}  // namespace softgpu
