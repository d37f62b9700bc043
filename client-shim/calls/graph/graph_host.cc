// Host function nodes of graphs: the function and its argument stay here, under a ticket that lasts
// until the worker says that no graph uses it any more.
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/stream/callbacks.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Set(const CUgraphExec* exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  calls::lwGraphSetHost set;
  LONGWIRE_TRY(SetChanged(exec, node, &set));
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t context = CurrentNumber();
  set.ticket = NewHostFunction(params->fn, params->userData, context, true);
  auto answer = Ask(context, set);
  if (answer.code != CUDA_SUCCESS) DropHostFunction(set.ticket);
  return answer.code;
}

}  // namespace

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                            const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  calls::lwGraphAddHost add;
  LONGWIRE_TRY(SetPlace(hGraph, dependencies, numDependencies, &add));
  if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t context = CurrentNumber();
  add.ticket = NewHostFunction(nodeParams->fn, nodeParams->userData, context, true);
  auto answer = Ask(context, add);
  if (answer.code == CUDA_SUCCESS) {
    FromWire(answer.reply.node, phGraphNode);
  } else {
    DropHostFunction(add.ticket);
  }
  return answer.code;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  calls::lwGraphHost ask;
  ask.node = ToWire(hNode);
  if (ask.node == 0 || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *nodeParams = {};
  bool known = FindHostFunction(answer.reply.ticket, &nodeParams->fn, &nodeParams->userData);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return Set(nullptr, hNode, nodeParams);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return Set(&hGraphExec, hNode, nodeParams);
}

}  // namespace longwire::shim::hand
