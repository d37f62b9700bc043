// Kernel launches and occupancy; that of clusters is in cluster.cc.
#include "softgpu/driver/module/launch.h"

#include <algorithm>
#include <cstdlib>

#include "softgpu/driver/module/cluster.h"
#include "softgpu/driver/module/module.h"
#include "softgpu/driver/module/texture_reference.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

// CUDA_LAUNCH_BLOCKING=1: launches return when the kernel has ended.
bool LaunchBlocking() {
  static const char* setting = getenv("CUDA_LAUNCH_BLOCKING");
  return setting != nullptr && *setting == '1';
}

CUresult LaunchIn(const void* handle, const LaunchConfig& config, CUstream stream_handle,
                  void** parameters, void** extra) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  KernelOperation operation{FindFunction(handle), config, {}};
  auto stream = FindStream(*context, stream_handle);
  if (!operation.function || !stream) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(InContext(&operation.function, stream->context()));
  operation.config.device = stream->context().device;
  BindReferences(operation.function->module->references, &operation.config);
  LONGWIRE_TRY(ChooseCluster(*operation.function, &operation.config));
  LONGWIRE_TRY(CheckLaunch(*operation.function, operation.config, stream->owner().multiprocessors));
  LONGWIRE_TRY(PackParameters(*operation.function, parameters, extra, &operation.parameters));
  CompletionRef done;
  LONGWIRE_TRY(Submit(*stream, std::move(operation), &done));
  return done && LaunchBlocking() ? WaitFor({&done, 1}, stream->context()) : CUDA_SUCCESS;
}

// Attributes that only hint at performance are ignored; those that change meaning are refused.
CUresult ReadAttributes(const CUlaunchConfig& launch, LaunchConfig* config) {
  for (unsigned i = 0; i < launch.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = launch.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        config->cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        ReadCluster(attribute.value, config);
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      default:
        return Refuse("a launch attribute that changes what runs");
    }
  }
  return CUDA_SUCCESS;
}

CUresult FindPotentialBlockSize(int* grid, int* block, const void* handle,
                                CUoccupancyB2DSize shared_for_block, size_t shared, int limit) {
  LONGWIRE_TRY(Enter());
  auto function = FindFunction(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  int most = function->info->max_threads_per_block;
  if (limit > 0) most = std::min(most, limit);
  int best_threads = 0;
  *grid = *block = 0;
  for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
    size_t dynamic = shared_for_block ? shared_for_block(threads) : shared;
    int blocks = BlocksPerMultiprocessor(*function, threads, dynamic);
    if (blocks * threads > best_threads) {
      best_threads = blocks * threads;
      *block = threads;
      *grid = blocks * DeviceShape::kMultiprocessors;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuLaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared, CUstream stream, void** parameters, void** extra) {
  LaunchConfig config{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, false};
  return LaunchIn(f, config, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void** parameters) {
  LaunchConfig config{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, true};
  return LaunchIn(f, config, stream, parameters, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* launch, CUfunction f, void** parameters,
                          void** extra) {
  if (launch == nullptr || (launch->numAttrs != 0 && launch->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  LaunchConfig config{{launch->gridDimX, launch->gridDimY, launch->gridDimZ},
                      {launch->blockDimX, launch->blockDimY, launch->blockDimZ},
                      launch->sharedMemBytes,
                      false};
  LONGWIRE_TRY(ReadAttributes(*launch, &config));
  return LaunchIn(f, config, launch->hStream, parameters, extra);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int threads, size_t shared,
                                                              unsigned int /*flags*/) {
  LONGWIRE_TRY(Enter());
  auto function = FindFunction(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = BlocksPerMultiprocessor(*function, threads, shared);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                     size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, shared, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                 int threads) {
  LONGWIRE_TRY(Enter());
  auto function = FindFunction(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (BlocksPerMultiprocessor(*function, threads, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
  size_t share = DeviceShape::kSharedBytesPerMultiprocessor / blocks;
  share =
      std::min(share - DeviceShape::kReservedSharedBytes, DeviceShape::kSharedBytesPerBlockOptin);
  *bytes = share - std::min(share, function->info->static_shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                          CUoccupancyB2DSize shared_for_block, size_t shared,
                                          int limit) {
  return FindPotentialBlockSize(grid, block, handle, shared_for_block, shared, limit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                   CUoccupancyB2DSize shared_for_block,
                                                   size_t shared, int limit, unsigned int) {
  return FindPotentialBlockSize(grid, block, handle, shared_for_block, shared, limit);
}
