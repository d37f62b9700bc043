// Host function nodes of graphs: the client runs the function when the graph gets there.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"

namespace longwire::worker {
namespace {

GraphPartRef NewHostPart(Graphs& graphs, CUDA_HOST_NODE_PARAMS* params) {
  GraphPartRef part = graphs.NewHostPart();
  params->fn = &host_nodes::Call;
  params->userData = reinterpret_cast<void*>(part->number);
  return part;
}

}  // namespace

CUresult Do_lwGraphAddHost(CallContext& context, const calls::lwGraphAddHost& call,
                           calls::lwGraphAddHost::Reply* reply) {
  Graphs& graphs = context.session().graphs();
  NewNode place;
  LONGWIRE_TRY(place.Resolve(context, call));
  if (call.ticket == 0) return CUDA_ERROR_INVALID_VALUE;
  CUDA_HOST_NODE_PARAMS params{};
  GraphPartRef part = NewHostPart(graphs, &params);
  CUgraphNode added = nullptr;
  LONGWIRE_TRY(context.driver().cuGraphAddHostNode(&added, place.graph, place.dependencies.data(),
                                                   place.dependencies.size(), &params));
  part->ticket = call.ticket;
  graphs.store().Announce(part);
  graphs.SetPart(place.graph, added, std::move(part));
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphSetHost(CallContext& context, const calls::lwGraphSetHost& call,
                           calls::lwGraphSetHost::Reply*) {
  const DriverTable& driver = context.driver();
  Graphs& graphs = context.session().graphs();
  ChangedNode changed;
  LONGWIRE_TRY(changed.Resolve(context, call));
  if (call.ticket == 0) return CUDA_ERROR_INVALID_VALUE;
  CUDA_HOST_NODE_PARAMS params{};
  GraphPartRef part = NewHostPart(graphs, &params);
  LONGWIRE_TRY(changed.exec == nullptr ? driver.cuGraphHostNodeSetParams(changed.node, &params)
                                       : driver.cuGraphExecHostNodeSetParams(
                                             changed.exec->handle, changed.node, &params));
  part->ticket = call.ticket;
  graphs.store().Announce(part);
  if (changed.exec == nullptr) {
    graphs.SetPart(nullptr, changed.node, std::move(part));
  } else {
    graphs.SetPartInExec(*changed.exec, changed.node, part);
  }
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphHost(CallContext& context, const calls::lwGraphHost& call,
                        calls::lwGraphHost::Reply* reply) {
  CUgraphNode node = nullptr;
  CUDA_HOST_NODE_PARAMS params{};
  LONGWIRE_TRY(context.Resolve(call.node, &node));
  LONGWIRE_TRY(context.driver().cuGraphHostNodeGetParams(node, &params));
  // A function that only moves bytes inside a captured graph is none of the program's.
  GraphPartRef part = context.session().graphs().PartOf(node);
  if (part == nullptr || part->ticket == 0) return CUDA_ERROR_INVALID_VALUE;
  reply->ticket = part->ticket;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
