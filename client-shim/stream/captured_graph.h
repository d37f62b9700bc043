// The graph that a stream's capture builds: begin, end, and the nodes on which the next node will
// depend.
#pragma once

#include <cuda.h>

#include <vector>

#include "client-shim/stream/capture.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

// Nodes of a graph, and the data of the edges from them (empty: none).
struct CaptureNodes {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};
// Nodes are added to `graph`, behind the nodes `after`; with null, to a new graph.
CUresult BeginCapture(Stream* stream, CaptureMode mode, CUgraph graph, const CaptureNodes& after);
// The nodes on which the stream's next node will depend, and the graph so far.
CUresult CaptureState(Stream* stream, CUgraph* graph, CaptureNodes* after);
CUresult SetCaptureNodes(Stream* stream, const CaptureNodes& after, uint32_t flags);
CUresult EndCapture(Stream* stream, CUgraph* graph);

}  // namespace longwire::shim
