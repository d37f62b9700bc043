// Graphs that live with their node: the bodies of conditional nodes, and child graphs that were
// given to their node. The program gets an array of bodies that is good as long as the graph that
// it put the first such node into.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace longwire::shim {

// `graph`: that has the node, may be a body itself. The array is the program's to read.
CUgraph* KeepBodies(CUgraph graph, CUgraphNode node, std::vector<CUgraph> bodies);
std::vector<CUgraph> BodiesOf(CUgraphNode node);  // none if it is no conditional node
// It lives with a node, and cannot be destroyed but with that.
bool IsBody(CUgraph graph);
// The node is gone, or the graph with all its nodes.
void ForgetBodies(CUgraphNode node);
void ForgetBodies(CUgraph graph);

}  // namespace longwire::shim
