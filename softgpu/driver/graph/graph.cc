#include "softgpu/driver/graph/graph.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace softgpu {

std::shared_ptr<GraphNode> AddNode(Graph& graph, Operation operation,
                                   std::vector<GraphNode*> dependencies, bool visible) {
  auto node = std::make_shared<GraphNode>();
  node->graph = &graph;
  node->operation = std::move(operation);
  node->dependencies = std::move(dependencies);
  graph.nodes.push_back(node);
  if (visible) Driver::Get().nodes.Add(node);
  return node;
}

std::shared_ptr<Graph> CloneGraph(const Graph& graph, bool visible) {
  auto clone = std::make_shared<Graph>();
  clone->user_objects = graph.user_objects;
  clone->conditions = graph.conditions;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (auto& node : graph.nodes) {
    Operation operation = node->operation;
    if (auto* conditional = std::get_if<ConditionalOperation>(&operation)) {
      for (auto& body : conditional->bodies) body = CloneGraph(*body, visible);
    }
    if (auto* child = std::get_if<ChildGraphOperation>(&operation)) {
      child->graph = CloneGraph(*child->graph, visible);
      child->graph->owned_by_node = true;
      if (visible) Driver::Get().graphs.Add(child->graph);
    }
    auto copy = AddNode(*clone, std::move(operation), {}, visible);
    copy->original = node.get();
    copy->enabled = node->enabled;
    copies[node.get()] = copy.get();
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (GraphNode* dependency : graph.nodes[i]->dependencies) {
      clone->nodes[i]->dependencies.push_back(copies.at(dependency));
    }
  }
  return clone;
}

std::vector<std::shared_ptr<Graph>> ChildrenOf(const Operation& operation) {
  if (auto* child = std::get_if<ChildGraphOperation>(&operation)) return {child->graph};
  auto* conditional = std::get_if<ConditionalOperation>(&operation);
  return conditional != nullptr ? conditional->bodies : std::vector<std::shared_ptr<Graph>>();
}

bool Holds(const Graph& graph, const Graph* wanted) {
  if (&graph == wanted) return true;
  for (auto& node : graph.nodes) {
    for (auto& child : ChildrenOf(node->operation)) {
      if (Holds(*child, wanted)) return true;
    }
  }
  return false;
}

bool IsUnique(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](auto& node) LONGWIRE_REQUIRES(Driver::mutex) {
                       return std::holds_alternative<ConditionalOperation>(node->operation) ||
                              std::holds_alternative<MemoryAllocOperation>(node->operation) ||
                              std::holds_alternative<MemoryFreeOperation>(node->operation);
                     });
}

std::vector<GraphNode*> SortNodes(const Graph& graph) {
  std::vector<GraphNode*> sorted;
  std::unordered_map<const GraphNode*, size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  for (auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    for (GraphNode* dependency : node->dependencies) dependents[dependency].push_back(node.get());
    if (node->dependencies.empty()) sorted.push_back(node.get());
  }
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (GraphNode* dependent : dependents[sorted[i]]) {
      if (--missing[dependent] == 0) sorted.push_back(dependent);
    }
  }
  if (sorted.size() != graph.nodes.size()) sorted.clear();
  return sorted;
}

void ForgetNodes(Graph& graph) {
  for (auto& node : graph.nodes) {
    for (auto& child : ChildrenOf(node->operation)) {
      ForgetNodes(*child);
      Driver::Get().graphs.Remove(child.get());
    }
    Driver::Get().nodes.Remove(node.get());
  }
  for (auto& condition : graph.conditions) Driver::Get().conditions.Remove(condition.get());
}

CUgraphNodeType TypeOf(const Operation& operation) {
  constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
      CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
      CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
      CU_GRAPH_NODE_TYPE_GRAPH,      CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static_assert(std::size(kTypes) == std::variant_size_v<Operation>);
  return kTypes[operation.index()];
}

}  // namespace softgpu
