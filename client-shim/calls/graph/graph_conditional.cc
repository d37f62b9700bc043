// Conditional nodes. The value that they decide by is the driver's, and so is its handle: kernels
// get it as it is.
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/graph/graph_bodies.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph,
                                        CUcontext ctx, unsigned int defaultLaunchValue,
                                        unsigned int flags) {
  if (ToWire(hGraph) == 0 || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOf(ctx, &context));
  LONGWIRE_TRY(ActivatePrimary(context));
  return forward::cuGraphConditionalHandleCreate(pHandle_out, hGraph, context->handle,
                                                 defaultLaunchValue, flags);
}

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params) {
  calls::lwGraphAddConditional add;
  LONGWIRE_TRY(SetPlace(graph, after, count, &add));
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOf(params->ctx, &context));
  add.context = context->number.load();
  add.condition = params->handle;
  add.type = params->type;
  add.bodies = params->size;
  auto answer = Ask(add.context, add);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  // The program reads as many as it asked for.
  if (answer.reply.body.size() != add.bodies) {
    return context->session->Distrust("made a conditional node with other bodies");
  }
  std::vector<CUgraph> bodies;
  for (uint64_t id : answer.reply.body) FromWire(id, &bodies.emplace_back());
  FromWire(answer.reply.node, node);
  params->phGraph_out = KeepBodies(graph, *node, std::move(bodies));
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  CUresult result = forward::cuGraphDestroyNode(hNode);
  if (result == CUDA_SUCCESS) ForgetBodies(hNode);
  return result;
}

}  // namespace longwire::shim::hand
