// Graphs and their executables: which objects of the worker a handle means, and what their nodes
// refer to in this process. Graphs that the worker made itself (built node by node) have its own
// number as their handle, with the highest bit set; captured ones are numbered here.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/copy/copy_sides.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// The handle of a captured graph.
CUgraph NewGraph(uint64_t id);
void DestroyGraphInWorker(uint64_t id);

// `told` (null: nobody asks): why the driver refuses the graph, and which node of it.
CUresult InstantiateGraph(CUgraph graph, uint64_t flags, CUgraphExec* exec,
                          CUDA_GRAPH_INSTANTIATE_PARAMS* told = nullptr);
CUresult UpdateGraphExec(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info);
CUresult LaunchGraph(CUgraphExec exec, Stream* stream);
CUresult SetChildInExec(CUgraphExec exec, CUgraphNode node, CUgraph child);
// What its launches record and wait for from now on.
void SetExecEvents(CUgraphExec exec, const calls::GraphEvents& events);
CUresult DestroyGraphExec(CUgraphExec exec);
CUresult DestroyGraph(CUgraph graph);

// The numbers of the worker; 0 for handles that are none.
uint64_t GraphId(CUgraph graph);
uint64_t GraphExecId(CUgraphExec exec);

// Gives a copy node's sides in the program's memory their transfers, which last until the worker
// says that no graph uses them any more. `told`: what the program reads back of the node.
void OfferNodeCopy(NodeCopy* node, const CUDA_MEMCPY3D& told);
// The node could not be made.
void TakeBackNodeCopy(const NodeCopy& node);
// What the program is told of a node.
CUDA_MEMCPY3D ToldOf(const calls::MemcpyNode& copy);

// No graph uses the transfer, or the host function, any more; 0: none.
void ForgetGraphPart(Session& session, uint64_t transfer, uint64_t ticket);

}  // namespace longwire::shim
