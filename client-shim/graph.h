// Graphs and their executables: which objects of the worker a handle means, and what they refer to
// in this process. Graphs that the worker made itself (built node by node) have its own number as
// their handle, with the highest bit set; captured ones are numbered here.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "client-shim/capture.h"

namespace longwire::shim {

// The handle of a captured graph.
CUgraph NewGraph(uint64_t id, std::shared_ptr<GraphResources> resources);
void DestroyGraphInWorker(uint64_t id);

CUresult InstantiateGraph(CUgraph graph, uint64_t flags, CUgraphExec* exec);
CUresult LaunchGraph(CUgraphExec exec, Stream* stream);
CUresult DestroyGraphExec(CUgraphExec exec);
CUresult DestroyGraph(CUgraph graph);

// A clone refers to what the original refers to.
void CopyResources(CUgraph from, CUgraph to);
void CopyResources(CUgraph from, CUgraphExec to);

// The numbers of the worker; 0 for handles that are none.
uint64_t GraphId(CUgraph graph);
uint64_t GraphExecId(CUgraphExec exec);

}  // namespace longwire::shim
