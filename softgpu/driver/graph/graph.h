// Graphs as programs build them. Everything here is guarded by Driver::mutex.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/driver/graph/operation.h"
#include "softgpu/driver/graph/user_object.h"

namespace softgpu {

struct GraphNode {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<GraphNode*> dependencies;
  const GraphNode* original = nullptr;  // of a clone's node: the node it was copied from
  bool enabled = true;
  std::vector<void*> parameter_pointers;  // what KernelNodeGetParams hands out
  std::vector<CUgraph> bodies;            // what adding a conditional node hands out
};

struct Graph {
  std::vector<std::shared_ptr<GraphNode>> nodes;  // in the order in which they were added
  bool owned_by_node = false;                     // a child graph: its parent destroys it
  bool moved = false;                             // a child graph that was its own before
  UserReferences user_objects;
  std::vector<std::shared_ptr<Condition>> conditions;  // made for it
};

inline CUgraphNode NodeHandle(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}
std::shared_ptr<GraphNode> AddNode(Graph& graph, Operation operation,
                                   std::vector<GraphNode*> dependencies, bool visible = true)
    LONGWIRE_REQUIRES(Driver::mutex);
// The graphs within a node: a child graph, the bodies of a conditional node.
std::vector<std::shared_ptr<Graph>> ChildrenOf(const Operation& operation);
// Whether it has nodes of which there can be no copies: conditional ones, of memory.
bool IsUnique(const Graph& graph) LONGWIRE_REQUIRES(Driver::mutex);
// A copy whose nodes know their originals; `visible` puts graph nodes into the handle tables.
std::shared_ptr<Graph> CloneGraph(const Graph& graph, bool visible)
    LONGWIRE_REQUIRES(Driver::mutex);
// Nodes so that each comes after its dependencies; empty if there is a cycle (and nodes).
std::vector<GraphNode*> SortNodes(const Graph& graph) LONGWIRE_REQUIRES(Driver::mutex);
void ForgetNodes(Graph& graph) LONGWIRE_REQUIRES(Driver::mutex);
CUgraphNodeType TypeOf(const Operation& operation);

}  // namespace softgpu
