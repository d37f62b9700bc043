// The graph that a stream's capture makes: its beginning and end, and the nodes that the next one
// comes after.
#pragma once

#include <cuda.h>

#include <vector>

#include "client-shim/stream/capture.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

// Nodes of a graph, and what the edges from them say besides (empty: nothing).
struct CaptureNodes {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
};
// `graph`: where the nodes are added, behind `after`; null: a new one.
CUresult BeginCapture(Stream* stream, CaptureMode mode, CUgraph graph, const CaptureNodes& after);
// What the stream's next node will come after, and the graph so far.
CUresult CaptureState(Stream* stream, CUgraph* graph, CaptureNodes* after);
CUresult SetCaptureNodes(Stream* stream, const CaptureNodes& after, uint32_t flags);
CUresult EndCapture(Stream* stream, CUgraph* graph);

}  // namespace longwire::shim
