// How the parts of an executable's nodes hang together: which copies' bytes move around which host
// function, found from the edges when it is made. All others move before or after the launch.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "server/worker/graph/graph_parts.h"

namespace longwire::worker {

struct PlanEntry {
  CUgraphNode node = nullptr;  // of the graph that the executable was made from
  GraphPartRef part;
  bool read_at_host = false;   // the bytes are fetched after a host function
  bool write_at_host = false;  // the bytes are sent before a host function
  // Of a host function: the entries whose bytes must be in the program when it runs, and those that
  // read what it wrote.
  std::vector<size_t> before, after;

  bool IsOrdered() const { return !before.empty() || !after.empty(); }
};

struct GraphPlan {
  std::vector<PlanEntry> entries;

  bool WritesProgram() const;
  calls::GraphEvents Events() const;
  // What one launch at a time may use: blocks, and host functions around which bytes move.
  std::vector<std::atomic<bool>*> Exclusive() const;
};

struct Graph {
  uint64_t id = 0;
  CUgraph handle = nullptr;
};

struct GraphExec {
  uint64_t id = 0;
  CUgraphExec handle = nullptr;
  std::shared_ptr<const GraphPlan> plan;  // guarded by Graphs' lock; never null
};

using FindPart = std::function<GraphPartRef(CUgraphNode)>;
// The bodies of a conditional node; none of any other.
using FindBodies = std::function<std::vector<CUgraph>(CUgraphNode)>;

// CUDA_ERROR_NOT_SUPPORTED if a copy reads what another one wrote a part of into the program's
// memory, and they share no pinned memory; or if a body, which may not run, writes there.
CUresult MakePlan(const DriverTable& driver, CUgraph graph, const FindPart& find,
                  const FindBodies& bodies, GraphPlan* plan);

// Calls visit(graph, node, type) for each node of the graph, of its child graphs and bodies.
using VisitNode = std::function<void(CUgraph, CUgraphNode, CUgraphNodeType)>;
CUresult VisitNodes(const DriverTable& driver, CUgraph graph, const FindBodies& bodies,
                    const VisitNode& visit);

}  // namespace longwire::worker
