// Copy nodes of graphs. A side in the program's memory travels as a transfer: the worker asks for
// its bytes, or sends them, at every launch.
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/copy/copies.h"
#include "client-shim/graph/graph.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Describe(const CUDA_MEMCPY3D* params, CUcontext handle, uint32_t* context_number,
                  NodeCopy* node) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOf(handle, &context));
  *context_number = context->number.load();
  CopySide to, from;
  LONGWIRE_TRY(SidesOf(*params, &to, &from));
  return DescribeNodeCopy(to, from, {params->WidthInBytes, params->Height, params->Depth},
                          context->device, node);
}

CUresult Set(const CUgraphExec* exec, CUgraphNode handle, const CUDA_MEMCPY3D* params,
             CUcontext context_handle) {
  NodeCopy node;
  uint32_t context = 0;
  calls::lwGraphSetMemcpy set;
  LONGWIRE_TRY(SetChanged(exec, handle, &set));
  LONGWIRE_TRY(Describe(params, context_handle, &context, &node));
  OfferNodeCopy(*WhereOfNumber(context).session, &node, *params);
  set.copy = node.copy;
  auto answer = Ask(context, set);
  if (answer.code != CUDA_SUCCESS) TakeBackNodeCopy(*WhereOfNumber(context).session, node);
  return answer.code;
}

}  // namespace

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  NodeCopy node;
  uint32_t context = 0;
  calls::lwGraphAddMemcpy add;
  LONGWIRE_TRY(SetPlace(hGraph, dependencies, numDependencies, &add));
  LONGWIRE_TRY(Describe(copyParams, ctx, &context, &node));
  OfferNodeCopy(*WhereOfNumber(context).session, &node, *copyParams);
  add.copy = node.copy;
  auto answer = Ask(context, add);
  if (answer.code == CUDA_SUCCESS) {
    FromWire(answer.reply.node, phGraphNode);
  } else {
    TakeBackNodeCopy(*WhereOfNumber(context).session, node);
  }
  return answer.code;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  calls::lwGraphMemcpy ask;
  ask.node = ToWire(hNode);
  if (ask.node == 0 || nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code == CUDA_SUCCESS) *nodeParams = ToldOf(answer.reply.copy);
  return answer.code;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return Set(nullptr, hNode, nodeParams, nullptr);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return Set(&hGraphExec, hNode, copyParams, ctx);
}

}  // namespace longwire::shim::hand
