// Conditional nodes of graphs, and the values that they decide by.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"

namespace longwire::worker {

CUresult Do_cuGraphConditionalHandleCreate(CallContext& context,
                                           const calls::cuGraphConditionalHandleCreate& call,
                                           calls::cuGraphConditionalHandleCreate::Reply* reply) {
  CUgraph graph = nullptr;
  CUcontext owner = nullptr;
  CUgraphConditionalHandle made = 0;
  LONGWIRE_TRY(context.Resolve(call.hGraph, &graph));
  LONGWIRE_TRY(context.Resolve(call.ctx, &owner));
  LONGWIRE_TRY(context.driver().cuGraphConditionalHandleCreate(
      &made, graph, owner, call.defaultLaunchValue, call.flags));
  if (!context.session().graphs().conditionals().Add(made, graph)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reply->pHandle_out = made;
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphAddConditional(CallContext& context, const calls::lwGraphAddConditional& call,
                                  calls::lwGraphAddConditional::Reply* reply) {
  Conditionals& conditionals = context.session().graphs().conditionals();
  NewNode place;
  LONGWIRE_TRY(place.Resolve(context, call));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  LONGWIRE_TRY(context.Resolve(call.context, &params.conditional.ctx));
  if (!conditionals.Knows(call.condition) || call.bodies > Conditionals::kMaxBodies) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  params.conditional.handle = call.condition;
  params.conditional.type = static_cast<CUgraphConditionalNodeType>(call.type);
  params.conditional.size = call.bodies;
  CUgraphNode added = nullptr;
  LONGWIRE_TRY(context.driver().cuGraphAddNode_v2(&added, place.graph, place.dependencies.data(),
                                                  nullptr, place.dependencies.size(), &params));
  if (params.conditional.phGraph_out == nullptr) return CUDA_ERROR_UNKNOWN;
  std::vector<CUgraph> bodies(params.conditional.phGraph_out,
                              params.conditional.phGraph_out + call.bodies);
  for (CUgraph body : bodies) reply->body.push_back(context.Publish(body));
  conditionals.AddNode(added, std::move(bodies));
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
