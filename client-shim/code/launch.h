// Kernel launches: everything the driver would refuse at once is checked here, the parameters are
// packed by the function's layout, and the launch is queued.
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

// Queues a launch; the driver's code where it would refuse it at once. The grid counts blocks, a
// block threads. The arguments are in `parameters`, a pointer each, or as `extra` says, not both.
CUresult Launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** parameters,
                void** extra, std::span<const CUlaunchAttribute> attributes);

// Where parameters are gathered: on the stack, but for the few kernels that have many. Programs
// launch from threads with small stacks, too.
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

// Gathers a kernel's parameters as it finds them, into `storage` or where they lie already.
// CUDA_ERROR_INVALID_VALUE when some are missing.
CUresult PackParameters(const Function& function, void** parameters, void** extra,
                        ParameterStorage& storage, std::span<const std::byte>* packed);

// Blocks of that shape that fit on one multiprocessor at a time; asked once per shape and kept.
CUresult MaxActiveBlocks(Function* function, int block_threads, size_t shared_bytes, unsigned flags,
                         int* blocks);

}  // namespace longwire::shim
