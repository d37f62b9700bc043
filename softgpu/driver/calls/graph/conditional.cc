#include "softgpu/driver/calls/graph/conditional.h"

#include <algorithm>

namespace softgpu {
namespace {

constexpr unsigned kMaxBodies = 1 << 16;

bool SizeFits(CUgraphConditionalNodeType type, unsigned size) {
  switch (type) {
    case CU_GRAPH_COND_TYPE_IF:
      return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return size > 0 && size <= kMaxBodies;
    default:
      return false;
  }
}

bool MayBeInBody(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_EMPTY ||
         type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEMSET ||
         type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

bool IsGoodBody(const Graph& body) LONGWIRE_REQUIRES(Driver::mutex) {
  return std::all_of(
      body.nodes.begin(), body.nodes.end(), [](auto& node) LONGWIRE_REQUIRES(Driver::mutex) {
        auto children = ChildrenOf(node->operation);
        return MayBeInBody(TypeOf(node->operation)) &&
               std::all_of(children.begin(), children.end(),
                           [](auto& g) LONGWIRE_REQUIRES(Driver::mutex) { return IsGoodBody(*g); });
      });
}

}  // namespace

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(params->ctx, &context));
  auto condition =
      Driver::Get().conditions.Find(reinterpret_cast<void*>(uintptr_t{params->handle}));
  if (!condition || !SizeFits(params->type, params->size)) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(cuGraphAddEmptyNode(node, graph, dependencies, count));
  base::MutexLock lock(Driver::mutex);
  auto added = Driver::Get().nodes.Find(*node);
  if (!added) return CUDA_ERROR_INVALID_VALUE;
  ConditionalOperation operation{condition, params->type, {}};
  for (unsigned i = 0; i < params->size; ++i) {
    auto body = std::make_shared<Graph>();
    body->owned_by_node = true;
    added->bodies.push_back(reinterpret_cast<CUgraph>(Driver::Get().graphs.Add(body)));
    operation.bodies.push_back(std::move(body));
  }
  condition->used = true;
  added->operation = std::move(operation);
  params->phGraph_out = added->bodies.data();
  return CUDA_SUCCESS;
}

CUresult CheckConditions(const Graph& graph, CUgraphInstantiateResult* result) {
  for (auto& condition : graph.conditions) {
    if (condition->used) continue;
    *result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (auto& node : graph.nodes) {
    auto* conditional = std::get_if<ConditionalOperation>(&node->operation);
    if (conditional == nullptr) continue;
    for (auto& body : conditional->bodies) {
      if (IsGoodBody(*body)) continue;
      *result = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace softgpu

using namespace softgpu;

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph_handle,
                                        CUcontext context_handle, unsigned int initial,
                                        unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(context_handle, &context));
  if (handle == nullptr || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(graph_handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  auto condition = std::make_shared<Condition>();
  condition->initial = initial;
  condition->assigned = flags != 0;
  *handle = condition->handle();
  Driver::Get().conditions.Add(condition);
  graph->conditions.push_back(std::move(condition));
  return CUDA_SUCCESS;
}
