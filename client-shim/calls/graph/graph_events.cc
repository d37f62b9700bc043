// Event nodes of graphs.
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/graph/graph.h"
#include "client-shim/stream/event.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Find(CUevent handle, Event** event) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = FindEvent(handle);
  if (*event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // Such an event is a place in memory and no event of the driver.
  if ((*event)->shared_words != 0) return CUDA_ERROR_NOT_SUPPORTED;
  NoteGraphEvent(**event);
  return CUDA_SUCCESS;
}

CUresult Add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             CUevent handle, bool wait) {
  Event* event = nullptr;
  calls::lwGraphAddEvent add;
  LONGWIRE_TRY(SetPlace(graph, dependencies, count, &add));
  LONGWIRE_TRY(Find(handle, &event));
  add.event = event->id;
  add.wait = wait;
  auto answer = Ask(event->context_number, add);
  if (answer.code == CUDA_SUCCESS) FromWire(answer.reply.node, node);
  return answer.code;
}

CUresult Set(const CUgraphExec* exec, CUgraphNode node, CUevent handle, bool wait) {
  Event* event = nullptr;
  calls::lwGraphSetEvent set;
  LONGWIRE_TRY(SetChanged(exec, node, &set));
  LONGWIRE_TRY(Find(handle, &event));
  set.event = event->id;
  set.wait = wait;
  auto answer = Ask(event->context_number, set);
  if (answer.code == CUDA_SUCCESS && exec != nullptr) SetExecEvents(*exec, answer.reply.events);
  return answer.code;
}

CUresult Get(CUgraphNode node, CUevent* event, bool wait) {
  calls::lwGraphEvent ask;
  ask.node = ToWire(node);
  ask.wait = wait;
  if (ask.node == 0) return CUDA_ERROR_INVALID_VALUE;
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code == CUDA_SUCCESS) *event = HandleOfGraphEvent(answer.reply.event);
  return answer.code;
}

}  // namespace

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                   const CUgraphNode* dependencies, size_t numDependencies,
                                   CUevent event) {
  return Add(phGraphNode, hGraph, dependencies, numDependencies, event, false);
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return Get(hNode, event_out, false);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return Set(nullptr, hNode, event, false);
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUevent event) {
  return Set(&hGraphExec, hNode, event, false);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 CUevent event) {
  return Add(phGraphNode, hGraph, dependencies, numDependencies, event, true);
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return Get(hNode, event_out, true);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return Set(nullptr, hNode, event, true);
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUevent event) {
  return Set(&hGraphExec, hNode, event, true);
}

}  // namespace longwire::shim::hand
