// Occupancy: answers of the worker's driver, kept by their arguments.
#include <algorithm>

#include "base/try.h"
#include "client-shim/code/launch.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Clusters(CUfunction func, const CUlaunchConfig& config, bool potential, int* value) {
  Function* function = FindFunction(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (config.numAttrs != 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (config.numAttrs > 64) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  LONGWIRE_TRY(RequireOwner(&context));
  calls::lwOccupancyClusters ask;
  ask.function = function->NumberAt(*context->session);
  ask.potential = potential;
  ask.grid_x = config.gridDimX;
  ask.grid_y = config.gridDimY;
  ask.grid_z = config.gridDimZ;
  ask.block_x = config.blockDimX;
  ask.block_y = config.blockDimY;
  ask.block_z = config.blockDimZ;
  ask.shared_bytes = config.sharedMemBytes;
  ask.attributes = std::as_bytes(std::span(config.attrs, config.numAttrs));
  auto answer =
      context->session->CallAndWait({context->number.load(), nullptr, 0}, ask, ask.EncodedBytes());
  if (answer.code == CUDA_SUCCESS) *value = answer.reply.value;
  return answer.code;
}

bool AreFlags(unsigned flags) { return (flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0; }

}  // namespace

CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func,
                                      const CUlaunchConfig* config) {
  if (config == nullptr || numClusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Clusters(func, *config, false, numClusters);
}

CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func,
                                            const CUlaunchConfig* config) {
  if (config == nullptr || clusterSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Clusters(func, *config, true, clusterSize);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
  if (!AreFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Function* function = FindFunction(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  return MaxActiveBlocks(function, blockSize, dynamicSMemSize, flags, numBlocks);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return hand::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                    dynamicSMemSize, 0);
}

// As the runtime's own header does it: the block size, in steps of a warp from the largest down,
// that keeps the most threads on a multiprocessor. The size function is the program's.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
  if (!AreFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Function* function = FindFunction(func);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  const Device& device = *FindDevice(context->device);
  int which = function->module->is_library ? context->device : -1, most = 0;
  LONGWIRE_TRY(FunctionAttribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, which, &most));
  int warp = AttributeOr(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  int per_processor = AttributeOr(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048);
  int limit = std::min(most, AttributeOr(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024));
  if (blockSizeLimit > 0) limit = std::min(limit, blockSizeLimit);
  int best_threads = 0, best_size = 0, best_blocks = 0;
  for (int rounded = (limit + warp - 1) / warp * warp; rounded > 0; rounded -= warp) {
    int size = std::min(rounded, limit), blocks = 0;
    size_t shared =
        blockSizeToDynamicSMemSize != nullptr ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
    LONGWIRE_TRY(MaxActiveBlocks(function, size, shared, flags, &blocks));
    if (blocks * size > best_threads) {
      best_threads = blocks * size;
      best_size = size;
      best_blocks = blocks;
    }
    if (best_threads == per_processor) break;  // it cannot get better
  }
  *blockSize = best_size;
  *minGridSize = best_blocks * AttributeOr(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return hand::cuOccupancyMaxPotentialBlockSizeWithFlags(
      minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int blockSize) {
  if (FindFunction(func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return forward::cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, func, numBlocks,
                                                          blockSize);
}

}  // namespace longwire::shim::hand
