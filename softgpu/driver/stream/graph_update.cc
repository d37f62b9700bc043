#include "softgpu/driver/stream/graph_update.h"

#include <algorithm>
#include <unordered_map>

#include "softgpu/driver/stream/run.h"

namespace softgpu {
namespace {

enum class Place { kHost, kDevice, kArray };

// Where one side of a copy lies.
Place PlaceOf(const CUDA_MEMCPY3D& copy, bool source) {
  const auto type = source ? copy.srcMemoryType : copy.dstMemoryType;
  if (type == CU_MEMORYTYPE_ARRAY) return Place::kArray;
  return InArena(source ? SourceAddress(copy) : TargetAddress(copy)) ? Place::kDevice
                                                                     : Place::kHost;
}

bool IsFlat(const CUDA_MEMCPY3D& copy) {
  return copy.WidthInBytes != 0 && copy.Height == 1 && copy.Depth == 1;
}

}  // namespace

GraphNode* FindCopy(const Graph& plan, const void* original) {
  for (auto& node : plan.nodes) {
    if (node->original == original) return node.get();
    for (auto& child : ChildrenOf(node->operation)) {
      if (GraphNode* found = FindCopy(*child, original)) return found;
    }
  }
  return nullptr;
}

// As the driver's manual has it: copies and fills are in one dimension and of something, before and
// after, and a copy keeps its direction.
CUresult CheckChange(const Operation& old, const Operation& changed) {
  if (auto* copy = std::get_if<CopyOperation>(&changed)) {
    const auto &to = copy->copy, &from = std::get<CopyOperation>(old).copy;
    bool same =
        PlaceOf(from, true) == PlaceOf(to, true) && PlaceOf(from, false) == PlaceOf(to, false);
    if (!same || !IsFlat(from) || !IsFlat(to)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (auto* fill = std::get_if<FillOperation>(&changed)) {
    for (auto* each : {&fill->fill, &std::get<FillOperation>(old).fill}) {
      if (each->height != 1 || each->width == 0) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (auto* child = std::get_if<ChildGraphOperation>(&changed)) {
    const GraphNode* culprit = nullptr;
    auto result = Compare(*std::get<ChildGraphOperation>(old).graph, *child->graph, &culprit);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  return CUDA_SUCCESS;
}

namespace {

// What stands in the way of a node's becoming another of its kind.
CUgraphExecUpdateResult CompareNodes(const Operation& old, const Operation& changed)
    LONGWIRE_REQUIRES(Driver::mutex) {
  auto* kernel = std::get_if<KernelOperation>(&changed);
  if (kernel != nullptr &&
      kernel->config.cooperative != std::get<KernelOperation>(old).config.cooperative) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  bool fill = std::holds_alternative<FillOperation>(changed);
  if (fill && CheckChange(old, changed) != CUDA_SUCCESS) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace

CUgraphExecUpdateResult Compare(const Graph& plan, const Graph& graph, const GraphNode** culprit) {
  if (plan.nodes.size() != graph.nodes.size()) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  std::unordered_map<const GraphNode*, const GraphNode*> pairs;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const GraphNode &old_node = *plan.nodes[i], &new_node = *graph.nodes[i];
    *culprit = &new_node;
    pairs[&old_node] = &new_node;
    if (TypeOf(old_node.operation) != TypeOf(new_node.operation)) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    auto old_children = ChildrenOf(old_node.operation),
         new_children = ChildrenOf(new_node.operation);
    if (old_children.size() != new_children.size()) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    for (size_t c = 0; c < old_children.size(); ++c) {
      auto result = Compare(*old_children[c], *new_children[c], culprit);
      if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
      *culprit = &new_node;
    }
    if (old_node.dependencies.size() != new_node.dependencies.size()) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (size_t d = 0; d < plan.nodes[i]->dependencies.size(); ++d) {
      *culprit = graph.nodes[i].get();
      auto& needed = graph.nodes[i]->dependencies;
      if (std::find(needed.begin(), needed.end(), pairs.at(plan.nodes[i]->dependencies[d])) ==
          needed.end()) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      }
    }
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    *culprit = graph.nodes[i].get();
    auto change = CompareNodes(plan.nodes[i]->operation, graph.nodes[i]->operation);
    if (change != CU_GRAPH_EXEC_UPDATE_SUCCESS) return change;
  }
  *culprit = nullptr;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace softgpu
