#include "softgpu/driver/module/launch.h"

#include <algorithm>
#include <cstring>

#include "softgpu/driver/module/cluster.h"
#include "softgpu/driver/module/module.h"

namespace softgpu {
namespace {

constexpr uint32_t kMaxGridX = 2147483647, kMaxGridYZ = 65535;

}  // namespace

int BlocksPerMultiprocessor(const Function& function, int threads, size_t dynamic_shared_bytes) {
  if (threads <= 0 || threads > function.info->max_threads_per_block) return 0;
  size_t shared = function.info->static_shared_bytes + dynamic_shared_bytes;
  if (shared > DeviceShape::kSharedBytesPerBlockOptin) return 0;
  int by_threads = DeviceShape::kMaxThreadsPerMultiprocessor / ((threads + 31) / 32 * 32);
  int by_shared = static_cast<int>(DeviceShape::kSharedBytesPerMultiprocessor /
                                   (shared + DeviceShape::kReservedSharedBytes));
  return std::min({by_threads, by_shared, DeviceShape::kMaxBlocksPerMultiprocessor});
}

CUresult CheckLaunch(const Function& function, const LaunchConfig& config, int multiprocessors) {
  if (const std::string& why = function.info->unsupported; !why.empty()) {
    return Refuse(("a launch of " + function.info->name + " (" + why + ")").c_str());
  }
  const uint32_t* grid = config.grid;
  const uint32_t* block = config.block;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  if (grid[0] > kMaxGridX || grid[1] > kMaxGridYZ || grid[2] > kMaxGridYZ || block[0] > 1024 ||
      block[1] > 1024 || block[2] > 64) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  if (threads > static_cast<uint64_t>(function.info->max_threads_per_block) ||
      config.dynamic_shared_bytes > static_cast<uint32_t>(function.max_dynamic_shared_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (config.cooperative) {
    uint64_t room =
        static_cast<uint64_t>(multiprocessors) *
        BlocksPerMultiprocessor(function, static_cast<int>(threads), config.dynamic_shared_bytes);
    room -= room % static_cast<uint64_t>(ClusterBlocks(config));
    uint64_t columns = uint64_t{grid[0]} * grid[1];
    if (columns > room || columns * grid[2] > room) {
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult PackParameters(const Function& function, void** parameters, void** extra,
                        std::vector<std::byte>* packed) {
  const KernelInfo& info = *function.info;
  packed->assign(info.parameter_bytes, std::byte{0});
  if (info.parameters.empty()) return CUDA_SUCCESS;
  if (parameters != nullptr) {
    for (size_t i = 0; i < info.parameters.size(); ++i) {
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      memcpy(packed->data() + info.parameters[i].offset, parameters[i], info.parameters[i].size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const ParameterInfo& last = info.parameters.back();
  if (buffer == nullptr || bytes < last.offset + last.size) return CUDA_ERROR_INVALID_VALUE;
  memcpy(packed->data(), buffer, std::min(bytes, packed->size()));
  return CUDA_SUCCESS;
}

}  // namespace softgpu
