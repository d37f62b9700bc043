// Graphs as a whole.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// What the driver says of a graph that it refuses is wanted too, so the call itself succeeds; as
// with updates.
CUresult Do_lwGraphInstantiate(CallContext& context, const calls::lwGraphInstantiate& call,
                               calls::lwGraphInstantiate::Reply* reply) {
  Graphs& graphs = context.session().graphs();
  CUgraph graph = nullptr;
  LONGWIRE_TRY(context.Resolve(call.graph, &graph));
  CUDA_GRAPH_INSTANTIATE_PARAMS told{};
  std::shared_ptr<GraphExec> made;  // may be destroyed already
  reply->code = graphs.Instantiate(graph, call, context.call().position, &told, &made);
  reply->result = told.result_out;
  reply->error_node = context.Publish(told.hErrNode_out);
  if (reply->code != CUDA_SUCCESS) return CUDA_SUCCESS;
  graphs.MemoryOf(graph, &reply->memory);
  auto plan = graphs.PlanOf(*made);
  reply->writes_program = plan->WritesProgram();
  reply->events = plan->Events();
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphExecUpdate(CallContext& context, const calls::lwGraphExecUpdate& call,
                              calls::lwGraphExecUpdate::Reply* reply) {
  Graphs& graphs = context.session().graphs();
  CUgraph graph = nullptr;
  CUresult result = context.Resolve(call.graph, &graph);
  auto exec = graphs.exec_table().Find(call.exec);
  if (result != CUDA_SUCCESS) return result;
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  reply->code = graphs.Update(graph, *exec, &info);
  reply->result = info.result;
  reply->error_node = context.Publish(info.errorNode);
  reply->error_from = context.Publish(info.errorFromNode);
  if (reply->code == CUDA_SUCCESS) {
    graphs.MemoryOf(graph, &reply->memory);
    graphs.changes().Forget(call.exec);
  }
  auto plan = graphs.PlanOf(*exec);
  reply->writes_program = plan->WritesProgram();
  reply->events = plan->Events();
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphLaunch(CallContext& context, const calls::lwGraphLaunch& call,
                          calls::lwGraphLaunch::Reply*) {
  WorkerSession& session = context.session();
  CUresult result = session.graphs().Launch(context.stream(), context.call(), call);
  if (result == CUDA_SUCCESS) session.statistics().Count(statistics::Count::kGraphLaunches);
  return result;
}

CUresult Do_lwGraphDestroy(CallContext& context, const calls::lwGraphDestroy& call,
                           calls::lwGraphDestroy::Reply*) {
  return context.session().graphs().Destroy(call.graph);
}

CUresult Do_lwGraphExecDestroy(CallContext& context, const calls::lwGraphExecDestroy& call,
                               calls::lwGraphExecDestroy::Reply*) {
  return context.session().graphs().DestroyExec(call.exec, context.call().position);
}

}  // namespace longwire::worker
