// Changes of executables: of single nodes, and by a graph as a whole.
#include "softgpu/driver/stream/graph_exec.h"
#include "softgpu/driver/stream/graph_update.h"

namespace softgpu {
namespace {

// Whether single nodes of this kind can be switched off.
bool CanBeDisabled(const GraphNode& node) LONGWIRE_REQUIRES(Driver::mutex) {
  const CUgraphNodeType type = TypeOf(node.operation);
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int enabled) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto exec = Driver::Get().execs.Find(exec_handle);
  GraphNode* node = exec ? FindCopy(*exec->plan, handle) : nullptr;
  if (node == nullptr || !CanBeDisabled(*node)) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int* enabled) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto exec = Driver::Get().execs.Find(exec_handle);
  GraphNode* node = exec ? FindCopy(*exec->plan, handle) : nullptr;
  if (node == nullptr || enabled == nullptr || !CanBeDisabled(*node)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *enabled = node->enabled;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec_handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto exec = Driver::Get().execs.Find(exec_handle);
  auto graph = Driver::Get().graphs.Find(graph_handle);
  if (!exec || !graph || graph->moved || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const GraphNode* culprit = nullptr;
  *info = {};
  info->result = Compare(*exec->plan, *graph, &culprit);
  info->errorNode = NodeHandle(culprit);
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  auto update = CloneGraph(*graph, false);
  LONGWIRE_TRY(ChooseClusters(*update));
  for (size_t i = 0; i < update->nodes.size(); ++i) {
    exec->plan->nodes[i]->operation = std::move(update->nodes[i]->operation);
  }
  exec->plan->conditions = update->conditions;
  return CUDA_SUCCESS;
}
