// Graphs as programs build them.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/driver/graph/operation.h"
#include "softgpu/driver/graph/user_object.h"

namespace softgpu {

struct GraphNode {
  Graph* graph = nullptr;  // constant from AddNode on
  Operation operation LONGWIRE_GUARDED_BY(Driver::mutex);
  std::vector<GraphNode*> dependencies LONGWIRE_GUARDED_BY(Driver::mutex);
  // Of a clone's node: the node it was copied from.
  const GraphNode* original LONGWIRE_GUARDED_BY(Driver::mutex) = nullptr;
  bool enabled LONGWIRE_GUARDED_BY(Driver::mutex) = true;
  // What cuGraphKernelNodeGetParams returns, and what adding a conditional node returns.
  std::vector<void*> parameter_pointers LONGWIRE_GUARDED_BY(Driver::mutex);
  std::vector<CUgraph> bodies LONGWIRE_GUARDED_BY(Driver::mutex);
};

struct Graph {
  // In the order in which they were added.
  std::vector<std::shared_ptr<GraphNode>> nodes LONGWIRE_GUARDED_BY(Driver::mutex);
  bool owned_by_node LONGWIRE_GUARDED_BY(Driver::mutex) =
      false;  // a child graph: its parent destroys it
  bool moved LONGWIRE_GUARDED_BY(Driver::mutex) =
      false;  // a child graph that was a graph of its own before
  UserReferences user_objects LONGWIRE_GUARDED_BY(Driver::mutex);
  // Those created for this graph.
  std::vector<std::shared_ptr<Condition>> conditions LONGWIRE_GUARDED_BY(Driver::mutex);
};

inline CUgraphNode NodeHandle(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}
std::shared_ptr<GraphNode> AddNode(Graph& graph, Operation operation,
                                   std::vector<GraphNode*> dependencies, bool visible = true)
    LONGWIRE_REQUIRES(Driver::mutex);
// The graphs within a node: a child graph, the bodies of a conditional node.
std::vector<std::shared_ptr<Graph>> ChildrenOf(const Operation& operation);
// True if it is the wanted graph, or that is a child graph within it.
bool Holds(const Graph& graph, const Graph* wanted) LONGWIRE_REQUIRES(Driver::mutex);
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
