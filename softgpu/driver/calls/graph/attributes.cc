// Attributes of kernel nodes. Only cooperative launches and clusters change what a node does; the
// rest read as zero. Whether grid and cluster fit each other is seen when the graph is made
// executable.
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/module/cluster.h"

namespace softgpu {
namespace {

constexpr CUkernelNodeAttrID kKept[] = {CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE,
                                        CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION};

LaunchConfig* FindConfig(CUgraphNode handle) LONGWIRE_REQUIRES(Driver::mutex) {
  auto node = Driver::Get().nodes.Find(handle);
  auto* kernel = node ? std::get_if<KernelOperation>(&node->operation) : nullptr;
  return kernel != nullptr ? &kernel->config : nullptr;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  LaunchConfig* config = FindConfig(handle);
  if (config == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE) {
    config->cooperative = value->cooperative != 0;
  } else if (attribute == CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION) {
    ReadCluster(*value, config);
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* value) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  const LaunchConfig* config = FindConfig(handle);
  if (config == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  if (attribute == CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE) {
    value->cooperative = config->cooperative;
  } else if (attribute == CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION) {
    value->clusterDim = {config->cluster[0], config->cluster[1], config->cluster[2]};
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  for (CUkernelNodeAttrID attribute : kKept) {
    CUkernelNodeAttrValue value = {};
    LONGWIRE_TRY(cuGraphKernelNodeGetAttribute(from, attribute, &value));
    LONGWIRE_TRY(cuGraphKernelNodeSetAttribute(to, attribute, &value));
  }
  return CUDA_SUCCESS;
}
