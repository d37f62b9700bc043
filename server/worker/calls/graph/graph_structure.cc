// Calls that put one graph's nodes into another or take them away: what the nodes need of the
// program goes along.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"

namespace longwire::worker {

CUresult Do_cuGraphClone(CallContext& context, const calls::cuGraphClone& call,
                         calls::cuGraphClone::Reply* reply) {
  CUgraph original = nullptr, clone = nullptr;
  CUresult result = context.Resolve(call.originalGraph, &original);
  if (result == CUDA_SUCCESS) result = context.driver().cuGraphClone(&clone, original);
  if (result == CUDA_SUCCESS) result = context.session().graphs().Adopt(clone);
  reply->phGraphClone = context.Publish(clone);
  return result;
}

CUresult Do_cuGraphAddChildGraphNode(CallContext& context,
                                     const calls::cuGraphAddChildGraphNode& call,
                                     calls::cuGraphAddChildGraphNode::Reply* reply) {
  const DriverTable& driver = context.driver();
  CUgraph graph = nullptr, child = nullptr;
  std::vector<CUgraphNode> dependencies(call.dependencies.size());
  CUresult result = context.Resolve(call.hGraph, &graph);
  for (size_t i = 0; i < dependencies.size() && result == CUDA_SUCCESS; ++i) {
    result = context.Resolve(call.dependencies[i], &dependencies[i]);
  }
  if (result == CUDA_SUCCESS) result = context.Resolve(call.childGraph, &child);
  CUgraphNode node = nullptr;
  if (result == CUDA_SUCCESS) {
    result = driver.cuGraphAddChildGraphNode(&node, graph, dependencies.data(), dependencies.size(),
                                             child);
  }
  CUgraph embedded = nullptr;
  if (result == CUDA_SUCCESS) result = driver.cuGraphChildGraphNodeGetGraph(node, &embedded);
  if (result == CUDA_SUCCESS) result = context.session().graphs().Adopt(embedded);
  reply->phGraphNode = context.Publish(node);
  return result;
}

CUresult Do_lwGraphMoveChild(CallContext& context, const calls::lwGraphMoveChild& call,
                             calls::lwGraphMoveChild::Reply* reply) {
  NewNode place;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  LONGWIRE_TRY(place.Resolve(context, call));
  LONGWIRE_TRY(context.Resolve(call.child, &params.graph.graph));
  CUgraphNode added = nullptr;
  LONGWIRE_TRY(context.driver().cuGraphAddNode_v2(&added, place.graph, place.dependencies.data(),
                                                  nullptr, place.dependencies.size(), &params));
  context.session().graphs().Moved(params.graph.graph);
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

CUresult Do_cuGraphDestroyNode(CallContext& context, const calls::cuGraphDestroyNode& call,
                               calls::cuGraphDestroyNode::Reply*) {
  CUgraphNode node = nullptr;
  CUresult result = context.Resolve(call.hNode, &node);
  if (result != CUDA_SUCCESS || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  context.session().graphs().ForgetNode(node);
  result = context.driver().cuGraphDestroyNode(node);
  if (result == CUDA_SUCCESS) context.Forget<CUgraphNode>(call.hNode);
  return result;
}

CUresult Do_lwGraphSetChild(CallContext& context, const calls::lwGraphSetChild& call,
                            calls::lwGraphSetChild::Reply* reply) {
  Graphs& graphs = context.session().graphs();
  ChangedNode changed;
  CUgraph child = nullptr;
  LONGWIRE_TRY(changed.Resolve(context, call));
  LONGWIRE_TRY(context.Resolve(call.child, &child));
  if (changed.exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphExec& exec = *changed.exec;
  std::shared_ptr<const GraphPlan> plan;
  LONGWIRE_TRY(graphs.PlanWithChild(exec, changed.node, child, &plan));
  LONGWIRE_TRY(
      context.driver().cuGraphExecChildGraphNodeSetParams(exec.handle, changed.node, child));
  graphs.SetPlan(exec, plan);
  reply->writes_program = plan->WritesProgram();
  reply->events = plan->Events();
  return CUDA_SUCCESS;
}

CUresult Do_cuGraphNodeSetEnabled(CallContext& context, const calls::cuGraphNodeSetEnabled& call,
                                  calls::cuGraphNodeSetEnabled::Reply*) {
  Graphs& graphs = context.session().graphs();
  CUgraphNode node = nullptr;
  CUgraphExec handle = nullptr;
  LONGWIRE_TRY(context.Resolve(call.hGraphExec, &handle));
  LONGWIRE_TRY(context.Resolve(call.hNode, &node));
  LONGWIRE_TRY(context.driver().cuGraphNodeSetEnabled(handle, node, call.isEnabled));
  auto exec = graphs.exec_table().Find(call.hGraphExec);
  if (exec != nullptr) graphs.SetEnabledInExec(*exec, node, call.isEnabled != 0);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
