#include "softgpu/driver/module/cluster.h"

#include <algorithm>

#include "softgpu/driver/module/launch.h"
#include "softgpu/driver/module/module.h"

namespace softgpu {
namespace {

CUresult ReadLaunch(const CUlaunchConfig& launch, const Function& function, LaunchConfig* config,
                    int* blocks) {
  const uint64_t threads = uint64_t{launch.blockDimX} * launch.blockDimY * launch.blockDimZ;
  if (threads == 0 || (launch.numAttrs != 0 && launch.attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *config = {{launch.gridDimX, launch.gridDimY, launch.gridDimZ}, {}, launch.sharedMemBytes};
  for (unsigned i = 0; i < launch.numAttrs; ++i) {
    if (launch.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    ReadCluster(launch.attrs[i].value, config);
  }
  *blocks =
      BlocksPerMultiprocessor(function, static_cast<int>(std::min<uint64_t>(threads, 1 << 20)),
                              launch.sharedMemBytes) *
      DeviceShape::kMultiprocessors;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

// As documented: the size must be known, from the function or from the launch.
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* launch) {
  LONGWIRE_TRY(Enter());
  if (handle == nullptr || clusters == nullptr || launch == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  auto function = FindFunction(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  LaunchConfig config;
  int blocks = 0;
  LONGWIRE_TRY(ReadLaunch(*launch, *function, &config, &blocks));
  LONGWIRE_TRY(ChooseCluster(*function, &config));
  if (config.cluster[0] == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *clusters = blocks / ClusterBlocks(config);
  return CUDA_SUCCESS;
}

// Neither the launch's own cluster counts nor one that was compiled in, but the two must be the
// same, and the grid must fit. A size that the program set is the answer.
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle,
                                            const CUlaunchConfig* launch) {
  LONGWIRE_TRY(Enter());
  if (handle == nullptr || size == nullptr || launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto function = FindFunction(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  LaunchConfig config;
  int blocks = 0;
  LONGWIRE_TRY(ReadLaunch(*launch, *function, &config, &blocks));
  if (function->info->cluster[0] != 0) LONGWIRE_TRY(ChooseCluster(*function, &config));
  std::fill_n(config.cluster, 3, 0);
  LONGWIRE_TRY(TakeRequired(*function, &config));
  uint32_t most =
      function->non_portable ? DeviceShape::kMaxClusterBlocks : DeviceShape::kPortableClusterBlocks;
  const uint32_t bound = function->info->most_cluster_blocks;
  if (bound != 0) most = std::min(most, bound);
  *size = config.cluster[0] != 0 ? ClusterBlocks(config) : std::min(static_cast<int>(most), blocks);
  return CUDA_SUCCESS;
}
