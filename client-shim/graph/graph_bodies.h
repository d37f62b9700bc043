// Graphs that belong to a node: the bodies of conditional nodes, and child graphs that were moved
// into their node. The program gets an array of bodies, which is valid as long as the graph to
// which the node was added.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace longwire::shim {

// `graph` has the node, and may be a body itself. The program may read the array.
CUgraph* KeepBodies(CUgraph graph, CUgraphNode node, std::vector<CUgraph> bodies);
std::vector<CUgraph> BodiesOf(CUgraphNode node);  // empty if it is no conditional node
// True if the graph belongs to a node; it can only be destroyed with the node.
bool IsBody(CUgraph graph);
// The node was destroyed, or the graph with all its nodes.
void ForgetBodies(CUgraphNode node);
void ForgetBodies(CUgraph graph);

}  // namespace longwire::shim
