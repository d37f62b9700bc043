// Graphs and their executables: the worker's number of a handle, and the memory and functions of
// this process that nodes use. The worker numbers graphs that are built node by node; its number,
// which has the highest bit set, is their handle. Captured graphs are numbered here.
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

// `told` (may be null): why the driver refuses the graph, and which of its nodes is at fault.
CUresult InstantiateGraph(CUgraph graph, uint64_t flags, CUgraphExec* exec,
                          CUDA_GRAPH_INSTANTIATE_PARAMS* told = nullptr);
CUresult UpdateGraphExec(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info);
CUresult LaunchGraph(CUgraphExec exec, Stream* stream);
CUresult SetChildInExec(CUgraphExec exec, CUgraphNode node, CUgraph child);
// Sets the events that its launches record and wait for from now on.
void SetExecEvents(CUgraphExec exec, const calls::GraphEvents& events);
CUresult DestroyGraphExec(CUgraphExec exec);
CUresult DestroyGraph(CUgraph graph);

// The worker's numbers; 0 for invalid handles.
uint64_t GraphId(CUgraph graph);
uint64_t GraphExecId(CUgraphExec exec);

// Assigns transfers to the sides of a copy node that are in the program's memory. They last until
// the worker reports that no graph uses them any more. `told`: the parameters that the program gets
// when it reads the node.
void OfferNodeCopy(ClientSession& session, NodeCopy* node, const CUDA_MEMCPY3D& told);
// Reverts OfferNodeCopy, if the node could not be created.
void TakeBackNodeCopy(ClientSession& session, const NodeCopy& node);
// The parameters that the program gets when it reads the node.
CUDA_MEMCPY3D ToldOf(const calls::MemcpyNode& copy);

// No graph uses the transfer or the host function any more (0: none).
void ForgetGraphPart(ClientSession& session, uint64_t transfer, uint64_t ticket);

}  // namespace longwire::shim
