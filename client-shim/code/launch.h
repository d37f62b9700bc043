// Kernel launches. Checks everything that the driver would refuse at once, packs the parameters by
// the function's layout, and queues the launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <span>

#include "client-shim/code/module.h"

namespace longwire::shim {

struct LaunchShape {
  uint32_t grid_x = 1, grid_y = 1, grid_z = 1;
  uint32_t block_x = 1, block_y = 1, block_z = 1;
  uint32_t shared_bytes = 0;
  bool cooperative = false;
};

// Queues a launch, or returns the driver's error for one that it would refuse at once. The grid is
// in blocks, the block in threads. The arguments are in `parameters`, one pointer each, or in
// `extra`, but not in both.
CUresult Launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** parameters,
                void** extra, std::span<const CUlaunchAttribute> attributes);

// Memory in which parameters are gathered: on the stack, except for the few kernels that have many,
// since programs also launch from threads with small stacks.
class ParameterStorage {
 public:
  std::byte* Take(size_t bytes) {
    if (bytes <= sizeof(usual_)) return usual_;
    large_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return large_.get();
  }

 private:
  std::byte usual_[4096];
  std::unique_ptr<std::byte[]> large_;
};

// Packs a kernel's parameters into `storage`, or uses the program's buffer if they are packed
// already. CUDA_ERROR_INVALID_VALUE if some are missing.
CUresult PackParameters(const Function& function, void** parameters, void** extra,
                        ParameterStorage& storage, std::span<const std::byte>* packed);

// The number of blocks of this shape that fit on one multiprocessor. Cached by shape.
CUresult MaxActiveBlocks(Function* function, int block_threads, size_t shared_bytes, unsigned flags,
                         int* blocks);

}  // namespace longwire::shim
