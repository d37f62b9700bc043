// Event nodes of graphs: every launch records the event, or waits for it.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"

namespace longwire::worker {

CUresult Do_lwGraphAddEvent(CallContext& context, const calls::lwGraphAddEvent& call,
                            calls::lwGraphAddEvent::Reply* reply) {
  const DriverTable& driver = context.driver();
  Graphs& graphs = context.session().graphs();
  NewNode place;
  GraphPartRef part;
  LONGWIRE_TRY(place.Resolve(context, call));
  LONGWIRE_TRY(graphs.NewEventPart(call.event, context.context(), call.wait, &part));
  auto add = call.wait ? driver.cuGraphAddEventWaitNode : driver.cuGraphAddEventRecordNode;
  CUgraphNode added = nullptr;
  LONGWIRE_TRY(add(&added, place.graph, place.dependencies.data(), place.dependencies.size(),
                   part->event->handle));
  graphs.SetPart(place.graph, added, std::move(part));
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphSetEvent(CallContext& context, const calls::lwGraphSetEvent& call,
                            calls::lwGraphSetEvent::Reply* reply) {
  const DriverTable& driver = context.driver();
  Graphs& graphs = context.session().graphs();
  ChangedNode changed;
  GraphPartRef part;
  LONGWIRE_TRY(changed.Resolve(context, call));
  LONGWIRE_TRY(graphs.NewEventPart(call.event, context.context(), call.wait, &part));
  CUevent event = part->event->handle;
  if (changed.exec == nullptr) {
    auto set =
        call.wait ? driver.cuGraphEventWaitNodeSetEvent : driver.cuGraphEventRecordNodeSetEvent;
    LONGWIRE_TRY(set(changed.node, event));
    graphs.SetPart(nullptr, changed.node, std::move(part));
    return CUDA_SUCCESS;
  }
  auto set = call.wait ? driver.cuGraphExecEventWaitNodeSetEvent
                       : driver.cuGraphExecEventRecordNodeSetEvent;
  LONGWIRE_TRY(set(changed.exec->handle, changed.node, event));
  graphs.SetPartInExec(*changed.exec, changed.node, part);
  reply->events = graphs.PlanOf(*changed.exec)->Events();
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphEvent(CallContext& context, const calls::lwGraphEvent& call,
                         calls::lwGraphEvent::Reply* reply) {
  const DriverTable& driver = context.driver();
  CUgraphNode node = nullptr;
  CUevent event = nullptr;
  LONGWIRE_TRY(context.Resolve(call.node, &node));
  LONGWIRE_TRY(call.wait ? driver.cuGraphEventWaitNodeGetEvent(node, &event)
                         : driver.cuGraphEventRecordNodeGetEvent(node, &event));
  auto fixed = context.session().events().FindFixed(event);
  reply->event = fixed == nullptr ? 0 : fixed->event;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
