#include "softgpu/driver/module/cluster.h"

#include <algorithm>

namespace softgpu {
namespace {

int SideOf(CUfunction_attribute attribute) {
  return attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
}

bool IsSide(CUfunction_attribute attribute) {
  return SideOf(attribute) >= 0 && SideOf(attribute) < 3;
}

}  // namespace

CUresult TakeRequired(const Function& function, LaunchConfig* config) {
  uint32_t required[3];
  for (int i = 0; i < 3; ++i) required[i] = static_cast<uint32_t>(function.cluster[i]);
  const auto count = std::count(required, required + 3, 0u);
  if (function.info->cluster[0] != 0 || count == 3) return CUDA_SUCCESS;
  if (count != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  uint32_t* asked = config->cluster;
  if (std::count(asked, asked + 3, 0u) == 3) std::copy_n(required, 3, asked);
  return std::equal(required, required + 3, asked) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

void ReadCluster(const CUlaunchAttributeValue& value, LaunchConfig* config) {
  config->cluster[0] = value.clusterDim.x;
  config->cluster[1] = value.clusterDim.y;
  config->cluster[2] = value.clusterDim.z;
}

int ClusterBlocks(const LaunchConfig& config) {
  const uint32_t* c = config.cluster;
  return static_cast<int>(std::max(c[0] * c[1] * c[2], 1u));
}

CUresult ChooseCluster(const Function& function, LaunchConfig* config) {
  LONGWIRE_TRY(TakeRequired(function, config));
  const Status status = ResolveCluster(*function.info->kernel, config);
  if (!status.ok()) return static_cast<CUresult>(status.code);
  const bool portable = ClusterBlocks(*config) <= int{DeviceShape::kPortableClusterBlocks};
  return portable || function.non_portable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult GetClusterAttribute(int* value, CUfunction_attribute attribute, const Function& function) {
  const KernelInfo& info = *function.info;
  if (attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) {
    *value = info.needs_cluster;
  } else if (IsSide(attribute)) {
    const int side = SideOf(attribute);
    *value =
        info.cluster[0] != 0 ? static_cast<int>(info.cluster[side]) : function.cluster[side].load();
  } else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    *value = function.non_portable;
  } else {
    *value = function.cluster_policy;
  }
  return CUDA_SUCCESS;
}

CUresult SetClusterAttribute(Function& function, CUfunction_attribute attribute, int value) {
  if (value < 0) return CUDA_ERROR_INVALID_VALUE;
  if (IsSide(attribute)) {
    const int side = SideOf(attribute);
    // What was compiled in can be said again, and nothing else.
    if (const uint32_t* compiled = function.info->cluster; compiled[0] != 0) {
      const bool same = static_cast<uint32_t>(value) == compiled[side];
      return same ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    ForEachForm(function, [=](Function& form) { form.cluster[side] = value; });
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    if (value > 1) return CUDA_ERROR_INVALID_VALUE;
    ForEachForm(function, [=](Function& form) { form.non_portable = value != 0; });
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
    if (value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) return CUDA_ERROR_INVALID_VALUE;
    ForEachForm(function, [=](Function& form) { form.cluster_policy = value; });
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace softgpu
