// Fill nodes of graphs. Pinned memory that one fills is exposed, as it is when a stream fills it.
#include "base/try.h"
#include "client-shim/mirror/host_exposure.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult OnDevice(const CUDA_MEMSET_NODE_PARAMS* told, CUDA_MEMSET_NODE_PARAMS* params) {
  if (told == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = *told;
  uint64_t address = told->dst;
  CUresult result = ToDeviceAddress(&address);
  params->dst = address;
  return result;
}

}  // namespace

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  CUDA_MEMSET_NODE_PARAMS params;
  LONGWIRE_TRY(OnDevice(memsetParams, &params));
  return forward::cuGraphAddMemsetNode(phGraphNode, hGraph, dependencies, numDependencies, &params,
                                       ctx);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  CUDA_MEMSET_NODE_PARAMS params;
  CUresult result = OnDevice(nodeParams, &params);
  return result == CUDA_SUCCESS ? forward::cuGraphMemsetNodeSetParams(hNode, &params) : result;
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams,
                                        CUcontext ctx) {
  CUDA_MEMSET_NODE_PARAMS params;
  LONGWIRE_TRY(OnDevice(memsetParams, &params));
  return forward::cuGraphExecMemsetNodeSetParams(hGraphExec, hNode, &params, ctx);
}

}  // namespace longwire::shim::hand
